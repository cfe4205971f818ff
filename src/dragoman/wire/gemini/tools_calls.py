"""Function calls, their responses, and calls of built-in tools."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, NamedTuple

from msgspec import UNSET, UnsetType

from dragoman.model.jsontext import dumps
from dragoman.model.media import Audio, File, Image, Video
from dragoman.model.parts import (
    Opaque,
    Part,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
)
from dragoman.model.tools import ResultPart, ToolCall, ToolResult, make_call, make_result
from dragoman.wire.call_ids import CallIds
from dragoman.wire.cut_calls import is_left_out
from dragoman.wire.gemini.content_media import decode_media, encode_media
from dragoman.wire.gemini.dialect import NAME, ORIGIN, SIGNATURE, Writing, keep_fields, snake_names
from dragoman.wire.gemini.tools_provider_calls import is_from_metadata
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.overlay import Overlay, with_overlay
from dragoman.wire.reading import Reading
from dragoman.wire.settings_table import text

_FIELDS = frozenset({"name", "args", "id"})
_WRAPPED = "arguments that are not a JSON object are wrapped in one"


def decode_call(fields: dict[str, Any], kept: Overlay, reading: Reading) -> ToolCall | None:
    """Decode the function call in a part; None if it is malformed."""
    wire = fields["functionCall"]
    if not is_object(wire) or type(name := wire.get("name")) is not str:
        return None
    args, wire_id = wire.get("args"), wire.get("id")
    if args is not None and not is_object(args):
        return None
    for key, value in wire.items():
        if key not in _FIELDS or value is None or (key == "id" and type(value) is not str):
            kept.fields.setdefault("functionCall", {})[key] = value
    call_id, given_id = reading.calls.add_named_call(name, text(wire_id), args)
    signature = keep_fields(kept, fields, "functionCall")
    return make_call(
        call_id,
        name,
        # Missing arguments are an empty text (W80).
        "" if args is None else None,
        args,
        wire_id=given_id,
        signature=signature,
        origin=None if signature is None else reading.origin,
        extras=kept.extras(),
    )


def encode_call(part: ToolCall, writing: Writing) -> dict[str, Any] | None:
    """Encode a function call as the field of a part; None if it was cut off (I7)."""
    arguments = part.object_arguments()
    if is_left_out(part, arguments, writing):
        return None
    writing.add_call(part)
    call: dict[str, Any] = {"name": part.name}
    if (call_id := wire_id(part, writing)) is not None:
        call["id"] = call_id
    if arguments is None:
        call["args"] = {"input": part.raw}
        if part.kind != "custom":
            # Any value but an object would make the conversation unusable (I6).
            writing.repair_here("I6", "retyped", _WRAPPED)
    elif part.raw is None or not (part.raw == "" or part.raw.isspace()):
        call["args"] = arguments
    return {"functionCall": call}


def wire_id(call: ToolCall, writing: Writing) -> str | None:
    """The id of a call on the wire; None if it has none, as ids are optional (W81)."""
    if not writing.target.ids.are_allowed:
        return None
    return call.id if isinstance(call.wire_id, UnsetType) else call.wire_id


# --- function responses
#
# A response is an object (W82). Ours have a single key: `output` for the text or data of a result,
# `error` for those of a failure. Such objects are decoded the same way; any other is data.

_PART_NAMES = snake_names("inlineData", "fileData", "mediaResolution")
_RESPONSE_FIELDS = frozenset({"name", "response"})
_NOTHING = {"output": ""}
"""The response for an empty result: an object is required (W76)."""
_REFERENCES = frozenset({"$ref", "$defs"})
_NO_NAME = "unknown"
_UNSUPPORTED = "this content is not supported in a tool result"
_HOISTED = "media of a tool result are moved after the results (W96)"
_NO_STATE = Reading(None, CallIds())
"""For media in results, which have neither signatures nor calls."""


# --- decoding


class _ResponseContent(NamedTuple):
    text: str = ""
    data: Any = UNSET
    is_error: bool | None = None


def decode_result(fields: dict[str, Any], kept: Overlay, reading: Reading) -> ToolResult | None:
    """Decode the function response in a part; None if it is malformed."""
    wire = fields["functionResponse"]
    if not is_object(wire) or type(name := wire.get("name")) is not str:
        return None
    response, parts = wire.get("response"), wire.get("parts")
    if response is not None and not is_object(response):
        theirs, response = response, {"output": response}
        kept.value(("functionResponse", "response"), response, theirs)
    call_id, ours = _decode_call_id(wire, name, kept, reading)
    if "response" not in wire:
        kept.absent(("functionResponse", "response"), _NOTHING)
    elif response is None:
        kept.value(("functionResponse", "response"), _NOTHING, None)
    content = _decode_response(response)
    media = tuple(map(_decode_part, parts)) if is_list(parts) else ()
    for key, value in wire.items():
        is_decoded = (key == "parts" and media) or (key == "id" and ours is not None)
        if key not in _RESPONSE_FIELDS and not is_decoded:
            kept.fields.setdefault("functionResponse", {})[key] = value
    signature = keep_fields(kept, fields, "functionResponse")
    origin = None if signature is None else reading.origin
    if media or holds_references(content.data):
        origin = ORIGIN  # restored unchanged, only in this dialect
    return make_result(
        call_id,
        (*_text_parts(content), *media) if media else content.text,
        content.data,
        name,
        content.is_error,
        signature=signature,
        origin=origin,
        extras=kept.extras(),
    )


def _decode_call_id(
    wire: dict[str, Any], name: str, kept: Overlay, reading: Reading
) -> tuple[str, str | None]:
    """The id of the call, and the id that our encoder writes."""
    given = wire.get("id")
    call_id, ours = reading.calls.answer_named(name, text(given))
    if ours is not None:
        if "id" not in wire:
            kept.absent(("functionResponse", "id"), ours)
        elif given != ours:
            kept.value(("functionResponse", "id"), ours, given)
    return call_id, ours


def _decode_response(response: dict[str, Any] | None) -> _ResponseContent:
    if response is None:
        return _ResponseContent()
    is_error = True if response.get("error") is not None else None
    if len(response) == 1:
        ((key, value),) = response.items()
        if key == "output" or (key == "error" and is_error):
            if type(value) is str:
                return _ResponseContent(value, UNSET, is_error)
            if not is_object(value) or (key == "error" and value.get("error") is None):
                return _ResponseContent("", value, is_error)
    return _ResponseContent("", response, is_error)


def _text_parts(content: _ResponseContent) -> tuple[ResultPart, ...]:
    """The text or data beside media, as text parts."""
    has_data = content.data is not UNSET and content.data != {}
    value = dumps(content.data).decode("utf-8") if has_data else content.text
    return (Text(value),) if value else ()


def _decode_part(wire: Any) -> ResultPart:
    part = None
    if is_object(wire):
        kept = Overlay(NAME)
        fields = kept.renamed(wire, _PART_NAMES)
        kinds = [kind for kind in ("inlineData", "fileData") if fields.get(kind) is not None]
        if len(kinds) == 1 and fields.keys().isdisjoint((SIGNATURE, "mediaResolution")):
            part = decode_media(fields, kept, _NO_STATE)
    return Opaque(NAME, wire) if part is None else part


def holds_references(data: Any, known: Container[str] = ()) -> bool:
    """Whether data has a key, at any depth, that the API interprets as a reference (W95).

    References to `known` names are intended.
    """
    pending = [data]
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            for key in _REFERENCES.intersection(value):
                if not (isinstance(value[key], str) and value[key] in known):
                    return True
            pending += value.values()
        elif isinstance(value, (list, tuple)):
            pending += value
    return False


# --- encoding


def encode_result(part: ToolResult, writing: Writing) -> dict[str, Any]:
    """Encode a function response as the field of a part."""
    call = writing.calls.get(part.call_id)
    name = part.tool_name
    if call is not None and (name is None or not writing.target.tools.accepts_name(name)):
        name = call.name
    is_empty = name == "" and not writing.target.is_strict  # the original was empty
    body: dict[str, Any] = {
        "name": name if is_empty else name or _NO_NAME,
        "response": _encode_response(part),
    }
    call_id = part.call_id if call is None else wire_id(call, writing)
    if call_id is not None and writing.target.ids.are_allowed:
        body["id"] = call_id
    if part.content.__class__ is not str and (inside := _encode_content(part, name, writing)):
        body["parts"] = inside
    if not name and not is_empty:
        writing.lose_here("the tool name is unknown")
    return {"functionResponse": body}


def _encode_response(part: ToolResult) -> Any:
    data, content = part.data, part.content
    if data is UNSET:
        value = content if isinstance(content, str) else part.text
        return {"error" if part.is_error else "output": value}
    if holds_references(data) and not _is_from_here(part):
        data = dumps(data).decode("utf-8")  # references in text are not interpreted (W95)
    if is_object(data):
        has_failed = data.get("error") is not None
        if part.is_error is None or part.is_error is has_failed:
            return data
    return {"error" if part.is_error else "output": data}


def _encode_content(part: ToolResult, name: str | None, writing: Writing) -> list[Any]:
    """Encode the media in a response; unsupported ones are kept to be sent after it (W96)."""
    is_inside = writing.target.media.in_results
    if is_inside is None:
        is_inside = _is_from_here(part)
    inside: list[Any] = []
    outside: list[Any] = []
    for index, item in enumerate(part.content):
        if isinstance(item, (Text, Refusal)):
            continue
        writing.item = index
        body = _encode_part(item, is_inside=is_inside)
        if is_inside and getattr(item, "detail", None) not in {None, "auto"}:
            writing.lose_here("image detail is not supported in a tool result")
        if not body:
            writing.lose_here(_UNSUPPORTED)
        elif is_inside:
            inside += body
        else:
            outside += body
            writing.lose_here(_HOISTED)
    writing.item = None
    if outside:
        writing.hoisted += [{"text": f"(Shown by the tool {name or _NO_NAME}:)"}, *outside]
    return inside


def _encode_part(part: str | ResultPart, *, is_inside: bool) -> list[Any]:
    """Encode a part of a function response or content; empty if it is not supported."""
    if isinstance(part, Opaque):
        return [part.payload] if part.dialect == NAME else []
    if not isinstance(part, (Image, Audio, Video, File)):
        return []
    body = encode_media(part)
    if body is None:
        return []
    if is_inside:
        body.pop("mediaResolution", None)  # not supported in parts of a response
    return [with_overlay(body, part.extras, NAME)]


def _is_from_here(part: Part) -> bool:
    return part.origin is not None and part.origin.dialect == NAME


def in_call_order(written: list[Any], parts: tuple[Part, ...], writing: Writing) -> None:
    """Sort results that are only distinguished by order into the order of their calls (W78)."""
    named: dict[str, list[int]] = {}
    for index, part in enumerate(parts):
        if type(part) is not ToolResult:
            break  # results come first
        call = writing.calls.get(part.call_id)
        if call is not None and wire_id(call, writing) is None:
            named.setdefault(call.name, []).append(index)
    for places in named.values():
        if len(places) > 1:
            ordered = sorted(places, key=lambda index: writing.order[parts[index].call_id])  # type: ignore[attr-defined]  # a ToolResult
            for place, body in zip(places, [written[index] for index in ordered], strict=True):
                written[place] = body


# --- calls of built-in tools: code execution, and the tools that Gemini 3 reports

_OK = "OUTCOME_OK"
_CODE = "code_execution"
"""Our name for the tool whose parts have no name; other tools' names are in upper case."""
_NAMES = snake_names("toolType")
_CONTENT = {"toolCall": "args", "toolResponse": "response"}
_SERVER_PARTS = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")

ServerPart = tuple[str, str | None, Any]
"""Tool name, call id, and arguments or result."""


def decode_server_part(
    fields: dict[str, Any], kept: Overlay, reading: Reading
) -> ServerToolCall | ServerToolResult | None:
    """Decode the call or result of a built-in tool in a part; None if it is malformed."""
    kind = next(kind for kind in _SERVER_PARTS if fields.get(kind) is not None)
    wire = fields[kind]
    if not is_object(wire):
        return None
    decoded = _decode_tool(wire, kind, kept) if kind.startswith("tool") else _decode_code(wire)
    if decoded is None:
        return None
    signature, origin = keep_fields(kept, fields, kind), reading.origin
    extras = kept.extras()
    if kind in {"executableCode", "toolCall"}:
        return ServerToolCall(*decoded, signature=signature, origin=origin, extras=extras)
    outcome = wire.get("outcome") if kind == "codeExecutionResult" else None
    is_error = outcome != _OK if type(outcome) is str else None
    return ServerToolResult(*decoded, is_error, signature=signature, origin=origin, extras=extras)


def _decode_code(wire: dict[str, Any]) -> ServerPart:
    if type(wire.get("id")) is not str:
        return _CODE, None, wire
    return _CODE, wire["id"], {key: value for key, value in wire.items() if key != "id"}


def _decode_tool(wire: dict[str, Any], kind: str, kept: Overlay) -> ServerPart | None:
    wire = kept.renamed(wire, _NAMES, kind)
    key = _CONTENT[kind]
    name, call_id, content = wire.get("toolType"), text(wire.get("id")), wire.get(key)
    if type(name) is not str or name == _CODE:
        return None
    taken = {"toolType", "" if content is None else key, "" if call_id is None else "id"}
    if left := {name: value for name, value in wire.items() if name not in taken}:
        kept.fields[kind] = left
    return name, call_id, content


def encode_server_part(
    part: ServerToolCall | ServerToolResult, writing: Writing
) -> dict[str, Any] | None:
    """Encode the call or result of a built-in tool as the field of a part."""
    if writing.is_foreign(part):
        writing.lose_here("another provider's built-in tools can't be replayed")
        return None
    if is_from_metadata(part):
        return None  # decoded from response metadata, so it is not content
    is_call = isinstance(part, ServerToolCall)
    if part.name == _CODE:
        kind = "executableCode" if is_call else "codeExecutionResult"
        body = _encode_code(part) if isinstance(part, ServerToolCall) else _encode_outcome(part)
    else:
        kind = "toolCall" if is_call else "toolResponse"
        content = part.input if isinstance(part, ServerToolCall) else part.content
        body = {"toolType": part.name}
        if content is not None:
            body[_CONTENT[kind]] = content
    return {kind: dict(body) if part.call_id is None else {**body, "id": part.call_id}}


def _encode_code(part: ServerToolCall) -> dict[str, Any]:
    return part.input if is_object(part.input) else {"language": "PYTHON", "code": part.input}


def _encode_outcome(part: ServerToolResult) -> dict[str, Any]:
    outcome = "OUTCOME_FAILED" if part.is_error else _OK
    if not is_object(part.content):
        return {"outcome": outcome, "output": part.content}
    if part.is_error is not None and (part.content.get("outcome") == _OK) is bool(part.is_error):
        return {**part.content, "outcome": outcome}
    return part.content
