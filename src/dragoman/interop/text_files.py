"""Text files that the web page sends as text, with what it writes into a message's metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.frozen import thaw
from dragoman.model.messages import Message

KEY = "dragoman.page"
"""The metadata key of messages written on the page."""
ATTACHED = "attached"
INTERRUPTED = "interrupted"
"""Marks an answer whose process was killed."""


def named_text(name: str, content: str) -> str:
    """Returns a file as text: a line that names it to the model, and its content."""
    return f"{name}:\n\n{content}"


def content_of(text: str, name: str) -> str:
    """Returns the file's text without the line that names it to the model."""
    return text.removeprefix(named_text(name, ""))


def stamp_of(message: Message) -> dict[str, Any]:
    """Returns what the page wrote into a message's metadata; in imports, it may be anything."""
    found = message.metadata.get(KEY) if message.metadata else None
    return thaw(found) if isinstance(found, Mapping) else {}


def attached_names(message: Message) -> dict[str, str]:
    """Maps the index of a text part to its file name. The metadata is untrusted."""
    names = stamp_of(message).get(ATTACHED)
    if not isinstance(names, Mapping):
        return {}
    return {
        place: name
        for place, name in names.items()
        if isinstance(place, str) and isinstance(name, str)
    }


def is_interrupted(message: Message) -> bool:
    """Whether a message is the part of an answer whose process was killed."""
    return stamp_of(message).get(INTERRUPTED) is True
