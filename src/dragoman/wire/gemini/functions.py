"""Function calls and function responses."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from dragoman.model.media import Audio, File, Image, Video
from dragoman.model.parts import Opaque, Origin, Refusal, Text
from dragoman.model.tools import ResultPart, ToolCall, ToolResult
from dragoman.wire.gemini.calls import Calls
from dragoman.wire.gemini.media import decode_media, encode_media
from dragoman.wire.gemini.trace import (
    NAME,
    SIGNATURE,
    Trace,
    as_it_came,
    is_array,
    is_object,
    snake_names,
)
from dragoman.wire.gemini.writing import Writing

_PART_NAMES = snake_names("inlineData", "fileData")
_CALL_FIELDS = frozenset({"name", "args", "id"})
_RESULT_FIELDS = frozenset({"name", "response"})
_NOTHING = {"output": ""}
"""How we write a result that says nothing: there has to be an object (W76)."""


def decode_call(
    fields: dict[str, Any], trace: Trace, calls: Calls, origin: Origin | None
) -> ToolCall | None:
    """The call in a part; None where it is malformed."""
    wire = fields["functionCall"]
    if not is_object(wire) or type(name := wire.get("name")) is not str:
        return None
    args, wire_id = wire.get("args"), wire.get("id")
    if args is not None and not is_object(args):
        return None
    for key, value in wire.items():
        if key not in _CALL_FIELDS or value is None or (key == "id" and type(value) is not str):
            trace.fields.setdefault("functionCall", {})[key] = value
    call_id, kept = calls.admit(name, wire_id if type(wire_id) is str else None)
    signature = trace.leave(fields, "functionCall")
    return ToolCall(
        call_id,
        name,
        # Without arguments the model wrote nothing; the empty text says so (W80).
        "" if args is None else None,
        args,
        wire_id=kept,
        signature=signature,
        origin=None if signature is None else origin,
        extras=trace.extras(),
    )


def encode_call(part: ToolCall, writing: Writing) -> tuple[dict[str, Any], str | None]:
    """The function call, and what was lost."""
    writing.calls[part.id] = part
    call: dict[str, Any] = {"name": part.name}
    wire_id = _wire_id(part)
    if wire_id is not None:
        call["id"] = wire_id
    problem = None
    if part.raw is None:
        call["args"] = part.input
    elif part.kind == "custom":
        call["args"] = {"input": part.raw}
    elif not part.has_valid_arguments:
        # Something that is no object would poison the conversation for good (I6).
        call["args"] = {"input": part.raw}
        problem = "arguments that are not a JSON object were wrapped in one"
    elif part.raw.strip():
        call["args"] = part.arguments
    return {"functionCall": call}, problem


def _wire_id(call: ToolCall) -> str | None:
    return call.id if isinstance(call.wire_id, UnsetType) else call.wire_id


def decode_result(
    fields: dict[str, Any], trace: Trace, calls: Calls, origin: Origin | None
) -> ToolResult | None:
    """The result in a part; None where it is malformed."""
    wire = fields["functionResponse"]
    if not is_object(wire) or type(name := wire.get("name")) is not str:
        return None
    data, parts = wire.get("response"), wire.get("parts")
    if data is not None and not is_object(data):
        return None
    call_id, ours = _decode_answered(wire, name, trace, calls)
    if data is None:
        _decode_nothing(wire, trace)
    content = tuple(map(_decode_part, parts)) if is_array(parts) else ()
    for key, value in wire.items():
        is_said = (key == "parts" and content) or (key == "id" and ours is not None)
        if key not in _RESULT_FIELDS and not is_said:
            trace.fields.setdefault("functionResponse", {})[key] = value
    signature = trace.leave(fields, "functionResponse")
    return ToolResult(
        call_id,
        content or "",
        UNSET if data is None else data,
        name,
        # Failures have a key of their own (W82).
        True if data is not None and data.get("error") is not None else None,
        signature=signature,
        origin=None if signature is None else origin,
        extras=trace.extras(),
    )


def _decode_answered(
    wire: dict[str, Any], name: str, trace: Trace, calls: Calls
) -> tuple[str, str | None]:
    """The id of the call that is answered, and the one that our encoder writes."""
    wire_id = wire.get("id")
    call_id, ours = calls.answer(name, wire_id if type(wire_id) is str else None)
    if ours is not None:
        if "id" not in wire:
            trace.absent("functionResponse.id", ours)
        elif wire_id != ours:
            trace.instead("functionResponse.id", ours, wire_id)
    return call_id, ours


def _decode_nothing(wire: dict[str, Any], trace: Trace) -> None:
    if "response" in wire:
        trace.instead("functionResponse.response", _NOTHING, None)
    else:
        trace.absent("functionResponse.response", _NOTHING)


def encode_result(part: ToolResult, writing: Writing) -> tuple[dict[str, Any], str | None]:
    """The function response, and what was lost."""
    call = writing.calls.get(part.call_id)
    name = part.tool_name if part.tool_name is not None or call is None else call.name
    body: dict[str, Any] = {
        "name": "unknown" if name is None else name,
        "response": _encode_data(part),
    }
    wire_id = part.call_id if call is None else _wire_id(call)
    if wire_id is not None:
        body["id"] = wire_id
    problem = "the name of the tool is not known" if name is None else None
    if not isinstance(part.content, str):
        others = [item for item in part.content if not isinstance(item, (Text, Refusal))]
        written = [body for item in others for body in _encode_part(item)]
        if len(written) < len(others):
            problem = "content that can't stand in a tool result here"
        if written:
            body["parts"] = written
    return {"functionResponse": body}, problem


def _encode_data(part: ToolResult) -> Any:
    """The response, which has to be an object (W82)."""
    if part.data is UNSET:
        return {"error" if part.is_error else "output": part.text}
    return part.data if isinstance(part.data, dict) else {"output": part.data}


def _decode_part(wire: Any) -> ResultPart:
    part = None
    if is_object(wire):
        trace = Trace()
        fields = trace.camel(wire, _PART_NAMES)
        kinds = [kind for kind in ("inlineData", "fileData") if fields.get(kind) is not None]
        if len(kinds) == 1 and SIGNATURE not in fields:
            part = decode_media(fields, trace, Calls(), None)
    return Opaque(NAME, wire) if part is None else part


def _encode_part(part: ResultPart) -> tuple[Any, ...]:
    """The part of a function response, or nothing."""
    if isinstance(part, Opaque):
        return (part.payload,) if part.dialect == NAME else ()
    body = encode_media(part)[0] if isinstance(part, (Image, Audio, Video, File)) else None
    return () if body is None else (as_it_came(body, part.extras),)
