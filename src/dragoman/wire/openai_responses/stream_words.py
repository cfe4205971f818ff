"""The texts that a stream brings in pieces: where they are, and how they begin."""

from __future__ import annotations

from typing import Any, NamedTuple

from dragoman.model.parts import Refusal, Text, Thinking

Item = dict[str, Any]


class Words(NamedTuple):
    """A kind of text: the item and the list that it is in, and how an entry of it begins."""

    item: Item
    field: str
    place: str
    entry: Item
    part: type


_SPEECH: Item = {"type": "message", "role": "assistant", "status": "completed"}
_REASONING: Item = {"type": "reasoning", "summary": []}
WORDS = {
    "response.output_text.delta": Words(
        _SPEECH, "content", "content_index",
        {"type": "output_text", "text": "", "annotations": []}, Text,
    ),
    "response.refusal.delta": Words(
        _SPEECH, "content", "content_index", {"type": "refusal", "refusal": ""}, Refusal
    ),
    "response.reasoning_text.delta": Words(
        _REASONING, "content", "content_index", {"type": "reasoning_text", "text": ""}, Thinking
    ),
    "response.reasoning_summary_text.delta": Words(
        _REASONING, "summary", "summary_index", {"type": "summary_text", "text": ""}, Thinking
    ),
}  # fmt: skip

# Of the events about a part: the list that it is in, and the field with its place there.
PLACES = {
    "response.content_part.added": ("content", "content_index"),
    "response.content_part.done": ("content", "content_index"),
    "response.reasoning_summary_part.added": ("summary", "summary_index"),
    "response.reasoning_summary_part.done": ("summary", "summary_index"),
}
