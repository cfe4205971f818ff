"""Calls of the developer's own tools and their outputs, paired on `call_id`, not on `id` (W20)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from dragoman.model.frozen import EMPTY
from dragoman.model.ids import new_id
from dragoman.model.parts import Opaque, Text
from dragoman.model.tools import ResultPart, ToolCall, ToolResult
from dragoman.wire.openai_responses.content import decode_input, encode_input, is_plain
from dragoman.wire.openai_responses.forms import (
    NAME,
    ORIGIN,
    decode_form,
    decode_id,
    encode_form,
)

Kind = Literal["function", "custom"]

_TEXT_KEYS: dict[str, tuple[Kind, str]] = {
    "function_call": ("function", "arguments"),
    "custom_tool_call": ("custom", "input"),
}
_CALL_TYPES: dict[Kind, tuple[str, str]] = {
    kind: (wire_type, key) for wire_type, (kind, key) in _TEXT_KEYS.items()
}
_OUTPUT_TYPES: dict[Kind, str] = {
    "function": "function_call_output",
    "custom": "custom_tool_call_output",
}
_COMPLETED: Mapping[str, Any] = {"status": "completed"}
_FAILED: Mapping[str, Any] = {"status": "incomplete"}


class ReadCalls:
    """The calls read so far: makes their ids unique and finds the call of an output (I5)."""

    __slots__ = ("_answered", "_kinds", "_renamed")

    def __init__(self) -> None:
        self._kinds: dict[str, Kind] = {}
        self._answered: set[str] = set()
        self._renamed: dict[str | None, list[str]] = {}

    def add(self, wire_id: str | None, kind: Kind) -> str:
        """The id of a call: the wire's own, or a new one where that is missing or taken."""
        if wire_id and wire_id not in self._kinds:
            self._kinds[wire_id] = kind
            return wire_id
        made = new_id("call_")
        self._kinds[made] = kind
        self._renamed.setdefault(wire_id, []).append(made)
        return made

    def answered(self, wire_id: str | None) -> str | None:
        """The id of the call that an output is for; None where it names none and none waits."""
        if wire_id in self._kinds and wire_id not in self._answered:
            self._answered.add(wire_id)
            return wire_id
        waiting = self._renamed.get(wire_id)
        return waiting.pop(0) if waiting else wire_id

    def kind(self, call_id: str) -> Kind:
        """The kind of tool; a function where the call is not here (the provider has it)."""
        return self._kinds.get(call_id, "function")


class WrittenCalls:
    """The calls written so far: how an output has to name its call, and which type it is of."""

    __slots__ = ("_custom", "_wire_ids")

    def __init__(self) -> None:
        self._custom: set[str] = set()
        self._wire_ids: dict[str, str | None] = {}

    def add(self, call: ToolCall, wire_id: str | None) -> None:
        """Remember a call that is out of the ordinary."""
        if wire_id != call.id:
            self._wire_ids[call.id] = wire_id
        if call.kind == "custom":
            self._custom.add(call.id)

    def wire_id(self, call_id: str) -> str | None:
        """What the wire calls it; None where it had no id."""
        return self._wire_ids.get(call_id, call_id)

    def kind(self, call_id: str) -> Kind:
        """The kind of tool."""
        return "custom" if call_id in self._custom else "function"


def decode_call(wire: dict[str, Any], calls: ReadCalls) -> ToolCall | None:
    """A `function_call` or `custom_tool_call` item; None where it is malformed."""
    kind, key = _TEXT_KEYS[wire["type"]]
    name, raw, wire_id = wire.get("name"), wire.get(key), wire.get("call_id")
    if type(name) is not str or type(raw) is not str:
        return None
    wire_id = wire_id if type(wire_id) is str else None
    call_id = calls.add(wire_id, kind)
    renamed = call_id != wire_id
    if len(wire) == 4 and not renamed:  # noqa: PLR2004 - type, name, text and call id: nothing else
        return ToolCall(call_id, name, raw, kind=kind)
    optional = {field: wire[field] for field in wire if field not in {"type", "name", key}}
    item_id = decode_id(wire, optional)
    if wire_id is not None:
        del optional["call_id"]
    return ToolCall(
        call_id,
        name,
        raw,
        kind=kind,
        wire_id=wire_id if renamed else UNSET,
        item_id=item_id,
        origin=ORIGIN if renamed else None,  # the wire's own id is for this dialect only
        extras=decode_form(optional, EMPTY if item_id is None else _COMPLETED),
    )


def encode_call(
    call: ToolCall, item_id: str | None, calls: WrittenCalls, *, is_ours: bool
) -> dict[str, Any]:
    """The item of a call; an id that the wire had counts only where that wire was ours."""
    wire_type, key = _CALL_TYPES[call.kind]
    wire_id: str | None = call.id
    if is_ours and not isinstance(call.wire_id, UnsetType):
        wire_id = call.wire_id
    calls.add(call, wire_id)
    body: dict[str, Any] = {"type": wire_type, "name": call.name, key: call.raw_arguments}
    if wire_id is not None:
        body["call_id"] = wire_id
    if item_id is not None:
        body["id"] = item_id
    body.update(encode_form(call.extras, EMPTY if item_id is None else _COMPLETED))
    return body


def decode_output(wire: dict[str, Any], calls: ReadCalls) -> ToolResult | None:
    """A `function_call_output` or `custom_tool_call_output` item; None where it is malformed."""
    content, wire_id = _decode_content(wire.get("output")), wire.get("call_id")
    wire_id = wire_id if type(wire_id) is str else None
    if content is None or (call_id := calls.answered(wire_id)) is None:
        return None
    known = {"output"} if wire_id is None else {"output", "call_id"}
    if wire["type"] == _OUTPUT_TYPES[calls.kind(call_id)]:
        if len(wire) == 3 and wire_id is not None:  # noqa: PLR2004 - type, output and call id
            return ToolResult(call_id, content)
        known.add("type")
    optional = {field: wire[field] for field in wire if field not in known}
    failed = optional.get("status") == "incomplete"  # W31: there is no field for an error
    return ToolResult(
        call_id,
        content,
        is_error=True if failed else None,
        item_id=decode_id(wire, optional),
        extras=decode_form(optional, _FAILED if failed else EMPTY),
    )


def _decode_content(wire: Any) -> str | tuple[ResultPart, ...] | None:
    if type(wire) is str:
        return wire
    if not isinstance(wire, list):
        return None
    parts = tuple(decode_input(part) or Opaque(NAME, part, origin=ORIGIN) for part in wire)
    if len(parts) == 1 and isinstance(text := parts[0], Text) and is_plain(text):
        return text.text
    return parts


def encode_output(
    result: ToolResult, item_id: str | None, calls: WrittenCalls, lost: list[int]
) -> dict[str, Any]:
    """The item of a result; `lost` gets the indices of parts that have no place in it."""
    body: dict[str, Any] = {
        "type": _OUTPUT_TYPES[calls.kind(result.call_id)],
        "output": _encode_content(result, lost),
    }
    if (wire_id := calls.wire_id(result.call_id)) is not None:
        body["call_id"] = wire_id
    if item_id is not None:
        body["id"] = item_id
    body.update(encode_form(result.extras, _FAILED if result.is_error else EMPTY))
    return body


def _encode_content(result: ToolResult, lost: list[int]) -> str | list[Any]:
    content = result.content
    if isinstance(content, str):
        return result.text
    if len(content) == 1 and is_plain(content[0]):
        return result.text
    encoded: list[Any] = []
    for index, part in enumerate(content):
        if isinstance(part, Opaque) and part.dialect == NAME:
            encoded.append(part.payload)
        elif (body := encode_input(part)) is not None:
            encoded.append(body)
        else:
            lost.append(index)
    return encoded
