"""Templates of repeated deltas: their constant fields and the position of their text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.wire.lane.flows import MARK
from dragoman.wire.openai_chat.dialect import DETAILS
from dragoman.wire.openai_chat.thinking import CONTENT_OF, TEXT_FIELDS
from dragoman.wire.openai_chat.tools import ARGUMENTS

Delta = dict[str, Any]
_PIECE = {"index", "function"}  # fields of further pieces of a call
_ARGUMENTS = ARGUMENTS["function"]


def choice_of(number: int, delta: Mapping[str, Any]) -> dict[str, Any]:
    """The choice of a chunk that is not the last."""
    return {"index": number, "delta": delta, "finish_reason": None}


def form_of(deltas: list[Delta], text: Any) -> tuple[Delta | None, int]:
    """The delta just written with a mark in place of its text, and the number of marks.

    None if it was not a single delta, or has other fields that may change.
    """
    delta = deltas[0] if len(deltas) == 1 else {}
    if DETAILS in delta:
        return _form_of_thinking(delta, text), 2
    if "tool_calls" in delta:
        return _form_of_call(delta, text), 1
    found = [key for key, value in delta.items() if type(value) is str and value == text]
    return ({found[0]: MARK} if found and len(delta) == 1 else None), 1


def _form_of_call(delta: Delta, text: Any) -> Delta | None:
    """The template for one call's arguments."""
    piece, *more = delta["tool_calls"]
    is_plain = not more and len(delta) == 1 and piece.keys() == _PIECE
    if not is_plain or piece["function"] != {_ARGUMENTS: text}:
        return None
    return {"tool_calls": [{**piece, "function": {_ARGUMENTS: MARK}}]}


def _form_of_thinking(delta: Delta, text: Any) -> Delta | None:
    """The template for one detail and the field that repeats its text."""
    field = next((key for key in TEXT_FIELDS if key in delta), DETAILS)
    details = delta[DETAILS]
    if delta.keys() != {DETAILS, field} or delta[field] != text or len(details) != 1:
        return None
    content = CONTENT_OF.get(details[0].get("type"), "")
    if details[0].get(content) != text:
        return None
    marked = {DETAILS: [{**details[0], content: MARK}], field: MARK}
    return {key: marked[key] for key in delta}
