"""Fast lane: shortcuts for plain requests (`requests`) and streams (`templates`, `flows`)."""
