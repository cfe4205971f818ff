"""Calls of the developer's own tools and their outputs, paired on `call_id`, not on `id` (W20)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import UNSET, UnsetType

from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Opaque, Origin, Text
from dragoman.model.tools import ResultPart, ToolCall, ToolResult, make_call, make_result
from dragoman.wire.call_ids import CallIds
from dragoman.wire.fitting.arguments import is_blank
from dragoman.wire.openai_responses.content import decode_input, encode_input, is_plain
from dragoman.wire.openai_responses.forms import (
    NAME,
    ORIGIN,
    decode_form,
    decode_id,
    encode_form,
    formed,
)
from dragoman.wire.target import Target

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
_OUTPUT_KINDS: dict[str, Kind] = {wire_type: kind for kind, wire_type in _OUTPUT_TYPES.items()}
_COMPLETED: Mapping[str, Any] = {"status": "completed"}
# W31: there is no field for an error, and for custom tools not even a status.
_FAILED: dict[Kind, Mapping[str, Any]] = {"function": {"status": "incomplete"}, "custom": EMPTY}


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

    def kind(self, result: ToolResult) -> Kind:
        """The kind of tool: the call's, or what the result says where the provider has the call."""
        return "custom" if result.call_id in self._custom else result.kind


def decode_call(wire: dict[str, Any], calls: CallIds, origin: Origin | None) -> ToolCall | None:
    """A `function_call` or `custom_tool_call` item; None where it is malformed.

    `origin` goes to one without any arguments, which is to come back as it was.
    """
    kind, key = _TEXT_KEYS[wire["type"]]
    name, raw, wire_id = wire.get("name"), wire.get(key), wire.get("call_id")
    if type(name) is not str or type(raw) is not str:
        return None
    wire_id = wire_id if type(wire_id) is str else None
    call_id, kept = calls.admit(name, wire_id, raw)
    renamed = kept is not UNSET
    if kind == "custom" or not is_blank(raw):
        origin = None
    if len(wire) == 4 and not renamed:  # noqa: PLR2004 - type, name, text and call id: nothing else
        return make_call(call_id, name, raw, kind=kind, origin=origin)
    optional = {field: wire[field] for field in wire if field not in {"type", "name", key}}
    item_id = decode_id(wire, optional)
    if wire_id is not None:
        del optional["call_id"]
    return make_call(
        call_id,
        name,
        raw,
        kind=kind,
        wire_id=kept,
        item_id=item_id,
        origin=ORIGIN if renamed else origin,  # the wire's own id is for this dialect only
        extras=decode_form(optional, EMPTY if item_id is None else _COMPLETED),
    )


def wire_id_of(call: ToolCall, target: Target | None) -> str | None:
    """The id that the wire had, if this target made it and would take it again (W22)."""
    had = call.wire_id
    if isinstance(had, UnsetType) or (target is not None and had and not target.accepts_id(had)):
        return call.id
    return call.id if had is None and target is not None and target.verifies_items else had


def encode_call(
    call: ToolCall, item_id: str | None, wire_id: str | None, calls: WrittenCalls
) -> dict[str, Any]:
    """The item of a call."""
    wire_type, key = _CALL_TYPES[call.kind]
    calls.add(call, wire_id)
    body: dict[str, Any] = {"type": wire_type, "name": call.name, key: call.raw_arguments}
    if wire_id is not None:
        body["call_id"] = wire_id
    if item_id is not None:
        body["id"] = item_id
    formed(body, call.extras, EMPTY if item_id is None else _COMPLETED)
    return body


def decode_output(wire: dict[str, Any], calls: CallIds) -> ToolResult | None:
    """A `function_call_output` or `custom_tool_call_output` item; None where it is malformed."""
    content, wire_id = _decode_content(wire.get("output")), wire.get("call_id")
    wire_id = wire_id if type(wire_id) is str else None
    if content is None or (call_id := calls.answer(wire_id)) is None:
        return None
    kind = _OUTPUT_KINDS[wire["type"]]
    if len(wire) == 3 and wire_id is not None:  # noqa: PLR2004 - type, output and call id
        return make_result(call_id, content, kind=kind)
    known = {"type", "output"} if wire_id is None else {"type", "output", "call_id"}
    optional = {field: wire[field] for field in wire if field not in known}
    failed = optional.get("status") == "incomplete"
    return make_result(
        call_id,
        content,
        kind=kind,
        is_error=True if failed else None,
        item_id=decode_id(wire, optional),
        extras=decode_form(optional, _FAILED[kind] if failed else EMPTY),
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
    result: ToolResult, item_id: str | None, kind: Kind, calls: WrittenCalls, lost: list[int]
) -> dict[str, Any]:
    """The item of a result; `lost` gets the indices of parts that have no place in it."""
    body: dict[str, Any] = {"type": _OUTPUT_TYPES[kind], "output": _encode_content(result, lost)}
    if (wire_id := calls.wire_id(result.call_id)) is not None:
        body["call_id"] = wire_id
    if item_id is not None:
        body["id"] = item_id
    form = encode_form(result.extras, EMPTY)
    if result.is_error:
        body |= _FAILED[kind]
    elif _FAILED[kind].items() <= form.items():
        form = {key: form[key] for key in form if key not in _FAILED[kind]}
    return {**form, **body}


def is_custom_output(item: Mapping[str, Any]) -> bool:
    """Whether an item is the output of a custom tool."""
    return bool(item["type"] == _OUTPUT_TYPES["custom"])


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
