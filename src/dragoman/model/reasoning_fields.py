"""Reads and writes thinking in message dicts: `reasoning_content` and `reasoning_details`.

`reasoning_content` is a string, as in DeepSeek. `reasoning_details`, as in OpenRouter, has an entry
for each part with its signature and sealed data; it is written only where the string is not enough.
The `format` of an entry names its writer; ours have `dragoman`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from dragoman.model.frozen import thaw
from dragoman.model.parts import Thinking, own_extras

TEXT = "reasoning_content"
DETAILS = "reasoning_details"

FORMAT = "dragoman"

_Form = Literal["full", "summary", "redacted"]
_FORMS: dict[str, tuple[_Form, str]] = {
    "reasoning.text": ("full", "text"),
    "reasoning.summary": ("summary", "summary"),
    "reasoning.encrypted": ("redacted", "text"),
}
"""The form of the thinking and the name of its text field, by type of entry."""
_TYPES = {form: (kind, field) for kind, (form, field) in _FORMS.items()}


def read_thinking(fields: dict[str, Any]) -> list[Thinking]:
    """Reads the thinking in a message's fields, and removes the entries it has read."""
    text = fields.get(TEXT)
    details = _read_details(fields.get(DETAILS))
    if details and text in (None, "", *_joined(details)):
        del fields[DETAILS]
        return details
    return [Thinking(text)] if isinstance(text, str) and text else []


def _joined(details: Sequence[Thinking]) -> tuple[str, str]:
    texts = [part.text for part in details if part.text]
    return "\n".join(texts), "".join(texts)


def _read_details(entries: Any) -> list[Thinking]:
    """Reads all entries as parts; returns none if any of them has another format."""
    if not isinstance(entries, (list, tuple)):
        return []
    read = [_read_detail(entry) for entry in entries]
    return [] if None in read else [part for part in read if part is not None]


def _read_detail(entry: Any) -> Thinking | None:
    kind = entry.get("type") if isinstance(entry, Mapping) else None
    if not isinstance(kind, str) or kind not in _FORMS:
        return None
    form, field = _FORMS[kind]
    text, data = entry.get(field) or "", entry.get("data")
    signature, item_id = entry.get("signature"), entry.get("id")
    if not all(isinstance(value, (str, type(None))) for value in (text, data, signature, item_id)):
        return None
    known = {"type", field, "data", "signature", "id"}
    unknown = {
        key: value
        for key, value in entry.items()
        if key not in known and (key, value) != ("format", FORMAT)
    }
    part = Thinking(text, data, form, signature=signature, item_id=item_id)
    return part.replace(extras={"canonical": unknown}) if unknown else part


def write_thinking(parts: Sequence[Thinking]) -> dict[str, Any]:
    """The message fields for these parts."""
    if not parts:
        return {}
    text = "\n".join(part.text for part in parts if part.text)
    fields: dict[str, Any] = {TEXT: text} if text else {}
    if len(parts) > 1 or not _is_plain(parts[0]):
        fields[DETAILS] = [_detail(part) for part in parts]
    return fields


def _is_plain(part: Thinking) -> bool:
    return bool(part.text) and part == Thinking(part.text) and part.item_id is None


def _detail(part: Thinking) -> dict[str, Any]:
    kind, field = _TYPES[part.form]
    said = {field: part.text or None, "data": part.data, "signature": part.signature,
            "id": part.item_id}  # fmt: skip
    filled = {name: value for name, value in said.items() if value is not None}
    return {"format": FORMAT, **thaw(own_extras(part.extras)), "type": kind, **filled}


def has_own_details(entries: Any) -> bool:
    """Whether any of these entries was written by this library rather than a server."""
    return isinstance(entries, (list, tuple)) and any(
        isinstance(entry, Mapping) and entry.get("format") == FORMAT for entry in entries
    )
