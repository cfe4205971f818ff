"""Pieces of tool calls out of a stream, also of the old form (`function_call`)."""

from __future__ import annotations

from typing import Any, Literal

from dragoman.model.jsontext import dumps
from dragoman.model.parts import Opaque
from dragoman.model.tools import ToolCallDelta
from dragoman.wire.openai_chat.calls import decode_signature
from dragoman.wire.openai_chat.spelling import (
    NAME,
    extras_of,
    is_integer,
    is_object,
    laid,
    words_of,
)

_KNOWN = frozenset({"index", "id", "type", "function", "custom"})
_BARE = frozenset({"index", "function"})
_TEXTS: dict[str, str] = {"function": "arguments", "custom": "input"}


def decode_call_delta(wire: Any, choice: int) -> ToolCallDelta | Opaque:
    """A piece of a call; what is unknown or malformed is carried whole."""
    return _more_arguments(wire, choice) or _decode_any(wire, choice)


def _more_arguments(wire: Any, choice: int) -> ToolCallDelta | None:
    """What most pieces are, in a fifth of the time; None for all others."""
    if type(wire) is not dict or len(wire) != len(_BARE) or not wire.keys() >= _BARE:
        return None
    index, inner = wire["index"], wire["function"]
    if type(inner) is not dict or len(inner) != 1 or not _is_index(index):
        return None
    text = inner.get("arguments")
    return ToolCallDelta(index, None, None, text, choice) if type(text) is str else None


def _decode_any(wire: Any, choice: int) -> ToolCallDelta | Opaque:
    kind: Literal["function", "custom"] = "function"
    if not is_object(wire) or wire.get("type") not in (None, "", "function", "custom"):
        return _unknown(wire)
    if is_object(wire.get("custom")) or wire.get("type") == "custom":
        kind = "custom"
    inner = wire.get(kind)
    fields = inner if is_object(inner) else {}
    name, text = fields.get("name"), fields.get(_TEXTS[kind])
    if is_object(text):
        text = dumps(text).decode("utf-8")  # some servers send the object itself
    if not isinstance(name, str | None) or not isinstance(text, str | None):
        return _unknown(wire)
    if inner is not None and not is_object(inner):
        return _unknown(wire)
    index, call_id, signature = wire.get("index"), wire.get("id"), None
    left = {key: value for key, value in wire.items() if key not in _KNOWN}
    if left and (signature := decode_signature(wire)) is not None:
        del left["extra_content"]
    if len(fields) > (name is not None) + (text is not None):
        odd = {k: v for k, v in fields.items() if k not in ("name", _TEXTS[kind])}
        if odd:
            left[kind] = odd
    return ToolCallDelta(
        index if _is_index(index) else None,
        call_id if isinstance(call_id, str) and call_id else None,
        name or None,
        text,
        choice,
        kind,
        signature,
        extras_of(left),
    )


def _is_index(value: Any) -> bool:
    """Whether this can be the place of a call; a negative number says as little as none."""
    return is_integer(value) and value >= 0


def _unknown(wire: Any) -> Opaque:
    payload = {k: v for k, v in wire.items() if k != "index"} if is_object(wire) else wire
    return Opaque(NAME, payload, extras=extras_of({}, ("tool_calls",)))


def encode_call_delta(
    piece: ToolCallDelta, index: int, call_id: str | None, *, is_first: bool, is_ours: bool
) -> dict[str, Any]:
    """A piece of a call, in its own place; the first one has the head (W8)."""
    inner: dict[str, Any] = {}
    if piece.name is not None:
        inner["name"] = piece.name
    elif is_first:
        inner["name"] = ""
    if piece.arguments_delta is not None or is_first:
        inner[_TEXTS[piece.kind]] = piece.arguments_delta or ""
    body: dict[str, Any] = {"index": index}
    if call_id is not None:
        body["id"] = call_id
    if is_first:
        body["type"] = piece.kind
    body[piece.kind] = inner
    if is_ours and piece.signature is not None:
        body["extra_content"] = {"google": {"thought_signature": piece.signature}}
    return laid(body, piece.extras) if is_ours else body


def decode_function_delta(wire: Any, choice: int) -> ToolCallDelta | None:
    """A piece of the old `function_call`; None where it is malformed."""
    if not is_object(wire):
        return None
    name, arguments = wire.get("name"), wire.get("arguments")
    if not isinstance(name, str | None) or not isinstance(arguments, str | None):
        return None
    left = {key: value for key, value in wire.items() if key not in ("name", "arguments")}
    return ToolCallDelta(None, None, name or None, arguments, choice, extras=extras_of(left))


def encode_function_delta(piece: ToolCallDelta) -> dict[str, Any]:
    """A piece of the old `function_call`."""
    fields = {"name": piece.name, "arguments": piece.arguments_delta}
    body: dict[str, Any] = {key: value for key, value in fields.items() if value is not None}
    return laid(body, piece.extras)


def is_legacy_delta(piece: ToolCallDelta) -> bool:
    """Whether the first piece of a call came as `function_call`: it has neither id nor word."""
    return (
        piece.id is None and piece.kind == "function" and "tool_calls" not in words_of(piece.extras)
    )
