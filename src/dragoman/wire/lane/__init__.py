"""The fast lane: plain requests (`requests`) and streams that repeat (`templates`, `flows`)."""
