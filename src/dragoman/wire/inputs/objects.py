"""Message objects of other libraries, as plain wire dicts."""

from __future__ import annotations

from typing import Any

from dragoman.model.messages import Message

Known = dict[str, Any] | list[dict[str, Any]] | Message | list[Message]


def read_object(value: object) -> Known | None:  # noqa: ARG001 - a stub
    """A message object of a known library as dicts of a dialect or messages; None for others."""
    return None
