"""Reads and writes tool calls as dicts, nested under `function` or `custom`, or flat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from dragoman.model.derived_ids import Identity, derived_call_id
from dragoman.model.frozen import EMPTY, thaw
from dragoman.model.parts import own_extras
from dragoman.model.tools import ToolCall, ToolResult, make_call
from dragoman.model.value import expect

_FIELDS = frozenset({"name", "arguments", "input"})
_SHARED = frozenset({"id", "type", "signature"})
_RESULT_NAMES: dict[str, str] = {
    "tool_call_id": "call_id",
    "toolCallId": "call_id",
    "result": "content",
    "isError": "is_error",
}


def read_call(call: Any, identity: Identity, number: int) -> ToolCall:
    """Reads a tool call from a dict: nested under `function` or `custom`, or flat.

    A call without a name is accepted if it has an id, because stored conversations may contain
    one. A missing id is derived from the message's identity and the index of the call.
    """
    if isinstance(call, ToolCall):
        return call
    expect(call, Mapping, "a tool call")
    kind: Literal["function", "custom"] = "custom" if call.get("type") == "custom" else "function"
    nested = call.get(kind)
    inner: Mapping[str, Any] = nested if isinstance(nested, Mapping) else call
    name: Any = inner.get("name", "" if call.get("id") else None)
    expect(name, str, "the name of a tool call")
    arguments = inner.get("input" if kind == "custom" else "arguments")
    id_ = call.get("id") or derived_call_id(identity, (0, number), (name, arguments))
    expect(id_, str, "the id of a tool call")
    more: dict[str, Any] = {"extras": _read_extras(call, kind, inner)}
    if (signature := call.get("signature")) is not None:
        expect(signature, str, "the signature of a tool call")
        more["signature"] = signature
    if isinstance(arguments, str) or kind == "custom":
        expect(arguments, str, "the input of a custom tool call")
        return make_call(id_, name, raw=arguments, kind=kind, **more)
    if arguments in (None, []):  # PHP writes an empty object as an empty list
        arguments = EMPTY
    expect(arguments, Mapping, "the arguments of a tool call")
    return make_call(id_, name, input=arguments, **more)


def plain_call(plain: Any) -> ToolCall | None:
    """A call that people wrote as an object; None if it is none."""
    if not isinstance(plain, dict) or not ("name" in plain or "function" in plain):
        return None
    call = read_call(plain, Identity("message", None), 0)
    call.check_made(portable=False)
    return call


def plain_result(plain: Any) -> ToolResult | None:
    """A result that people wrote as an object; None if it is none."""
    if not isinstance(plain, dict):
        return None
    fields: dict[str, Any] = {
        _RESULT_NAMES.get(str(name), str(name)): plain[name] for name in plain
    }
    if not {"call_id", "content"} <= fields.keys() <= {"call_id", "content", "is_error"}:
        return None
    return ToolResult(**fields)


def _read_extras(call: Mapping[str, Any], kind: str, inner: Mapping[str, Any]) -> Mapping[str, Any]:
    """The unknown fields of a tool call, such as a vendor-specific signature."""
    known = {*_SHARED, kind}
    if inner is call:
        known |= _FIELDS
    unknown = {key: value for key, value in call.items() if key not in known}
    if inner is not call:
        within = {key: value for key, value in inner.items() if key not in _FIELDS}
        unknown |= {kind: within} if within else {}
    return {"canonical": unknown} if unknown else EMPTY


def write_call(call: ToolCall, *, flat: bool) -> dict[str, Any]:
    """Writes a tool call as a dict; in the flat shape, valid arguments are an object, not text."""
    unknown = thaw(own_extras(call.extras))
    shared = {"id": call.id, "type": call.kind}
    if call.signature is not None:
        shared["signature"] = call.signature
    text = "input" if call.kind == "custom" else "arguments"
    inner: dict[str, Any] = {"name": call.name, text: call.raw_arguments}
    if not flat:
        within = unknown.pop(call.kind, None)
        within = within if isinstance(within, dict) else {}
        return {**unknown, **shared, call.kind: {**within, **inner}}
    if call.kind == "function":
        del shared["type"]
        if call.has_valid_arguments:
            inner["arguments"] = thaw(call.arguments)
    return {**unknown, **shared, **inner}
