"""Reasoning items: summaries, readable reasoning and sealed reasoning, all of one item.

A summary or a piece of reasoning is a `Thinking` part; parts of one item share its id, and the
first carries the sealed content (`data`) and the item's form. An item that can't be read at all is
one part of the form `redacted`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Origin, Part, Thinking
from dragoman.wire.openai_responses.forms import (
    ITEM,
    decode_form,
    decode_id,
    encode_form,
    item_form,
)

Form = Literal["summary", "full"]

_NO_SUMMARY: dict[str, Any] = {"summary": []}
_KEYS: dict[Form, tuple[str, str]] = {
    "summary": ("summary", "summary_text"),
    "full": ("content", "reasoning_text"),
}


def decode_reasoning(
    wire: dict[str, Any], previous: Part | None, origin: Origin | None
) -> list[Thinking] | None:
    """The parts of a reasoning item; None where it is malformed."""
    optional = dict(wire)
    del optional["type"]
    item_id = decode_id(wire, optional)
    entries = [*_entries(optional, "summary"), *_entries(optional, "full")]
    data = optional.pop("encrypted_content") if _is_sealed(wire) else None
    usual = EMPTY if "summary" in wire and "summary" not in optional else _NO_SUMMARY
    follows = isinstance(previous, Thinking) and previous.item_id == item_id
    item = optional if follows or optional != usual else None
    parts: list[Thinking] = []
    for form, entry in entries or [("redacted", {})]:
        kept = {key: entry[key] for key in entry if key not in {"type", "text"}}
        if ITEM in kept:
            return None
        extras = decode_form(kept, EMPTY, item)
        text = entry.get("text", "")
        parts.append(
            Thinking(text, data, form, item_id=item_id, origin=origin, extras=extras)  # type: ignore[arg-type]  # one of three
        )
        item = data = None
    return parts


def _is_sealed(wire: dict[str, Any]) -> bool:
    return type(wire.get("encrypted_content")) is str


def _entries(optional: dict[str, Any], form: Form) -> list[tuple[str, dict[str, Any]]]:
    """The texts of that form, taken out of the item; none where one can't be understood."""
    key, kind = _KEYS[form]
    wire = optional.get(key)
    if not isinstance(wire, list) or not wire:
        return []
    for entry in wire:
        if not isinstance(entry, dict) or entry.get("type") != kind:
            return []
        if type(entry.get("text")) is not str:
            return []
    del optional[key]
    return [(form, entry) for entry in wire]


def encode_reasoning(parts: Sequence[Thinking], item_id: str | None) -> dict[str, Any]:
    """The item that these parts make up."""
    first = parts[0]
    form = item_form(first)
    body: dict[str, Any] = {"type": "reasoning", **(_NO_SUMMARY if form is None else form)}
    if item_id is not None:
        body["id"] = item_id
    for kind in ("summary", "full"):
        key, entry_type = _KEYS[kind]
        texts = [_encode_entry(part, entry_type) for part in parts if shown_form(part) == kind]
        if texts:
            body[key] = texts
    if first.data is not None:
        body["encrypted_content"] = first.data
    return body


def shown_form(part: Thinking) -> str:
    """The form of its text; one beside redacted thinking, by hand, can be but a summary of it."""
    return "summary" if part.form == "redacted" and part.text else part.form


def _encode_entry(part: Thinking, kind: str) -> dict[str, Any]:
    entry = {"type": kind, "text": part.text, **encode_form(part.extras, EMPTY)}
    entry.pop(ITEM, None)
    return entry


def begins_item(part: Thinking, previous: Thinking) -> bool:
    """Whether a part belongs to another item than the one before it; each has one seal."""
    is_other = part.item_id != previous.item_id or item_form(part) is not None
    return is_other or part.data is not None
