"""Function responses.

A response is an object (W82). What we say in one has a single key: `output` for the text or the
data of a result, `error` for those of a failure; and so we read it. Other objects are data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import UNSET

from dragoman.model.jsontext import dumps
from dragoman.model.media import Audio, File, Image, Video
from dragoman.model.parts import Opaque, Origin, Part, Refusal, Text
from dragoman.model.tools import ResultPart, ToolResult, make_result
from dragoman.wire.call_ids import CallIds
from dragoman.wire.gemini.functions import wire_id
from dragoman.wire.gemini.media import decode_media, encode_media
from dragoman.wire.gemini.trace import (
    NAME,
    ORIGIN,
    SIGNATURE,
    Trace,
    as_it_came,
    is_array,
    is_object,
    snake_names,
)
from dragoman.wire.gemini.writing import Writing

_PART_NAMES = snake_names("inlineData", "fileData", "mediaResolution")
_FIELDS = frozenset({"name", "response"})
_NOTHING = {"output": ""}
"""How we write a result that says nothing: there has to be an object (W76)."""
_REFERENCES = frozenset({"$ref", "$defs"})
_NO_NAME = "unknown"
_NO_PLACE = "content that can't stand in a tool result here"
_HOISTED = "a tool's media are shown behind the results here (W96)"


# --- wire → model


class _Said(NamedTuple):
    text: str = ""
    data: Any = UNSET
    is_error: bool | None = None


def decode_result(
    fields: dict[str, Any], trace: Trace, calls: CallIds, origin: Origin | None
) -> ToolResult | None:
    """The result in a part; None where it is malformed."""
    wire = fields["functionResponse"]
    if not is_object(wire) or type(name := wire.get("name")) is not str:
        return None
    response, parts = wire.get("response"), wire.get("parts")
    if response is not None and not is_object(response):
        theirs, response = response, {"output": response}
        trace.instead("functionResponse.response", response, theirs)
    call_id, ours = _decode_answered(wire, name, trace, calls)
    if response is None:
        _decode_nothing(wire, trace)
    said = _decode_response(response)
    media = tuple(map(_decode_part, parts)) if is_array(parts) else ()
    for key, value in wire.items():
        is_said = (key == "parts" and media) or (key == "id" and ours is not None)
        if key not in _FIELDS and not is_said:
            trace.fields.setdefault("functionResponse", {})[key] = value
    signature = trace.leave(fields, "functionResponse")
    if media or _holds_references(said.data):
        origin = ORIGIN  # may go back as it came, and only here
    elif signature is None:
        origin = None
    return make_result(
        call_id,
        (*_told(said), *media) if media else said.text,
        said.data,
        name,
        said.is_error,
        signature=signature,
        origin=origin,
        extras=trace.extras(),
    )


def _decode_answered(
    wire: dict[str, Any], name: str, trace: Trace, calls: CallIds
) -> tuple[str, str | None]:
    """The id of the call that is answered, and the one that our encoder writes."""
    given = wire.get("id")
    call_id, ours = calls.answer_named(name, given if type(given) is str else None)
    if ours is not None:
        if "id" not in wire:
            trace.absent("functionResponse.id", ours)
        elif given != ours:
            trace.instead("functionResponse.id", ours, given)
    return call_id, ours


def _decode_nothing(wire: dict[str, Any], trace: Trace) -> None:
    if "response" in wire:
        trace.instead("functionResponse.response", _NOTHING, None)
    else:
        trace.absent("functionResponse.response", _NOTHING)


def _decode_response(response: dict[str, Any] | None) -> _Said:
    if response is None:
        return _Said()
    is_error = True if response.get("error") is not None else None
    if len(response) == 1:
        ((key, value),) = response.items()
        is_ours = key == "output" or (key == "error" and is_error)
        if is_ours and not is_object(value):
            if type(value) is str:
                return _Said(value, UNSET, is_error)
            return _Said("", value, is_error)
        if key == "error" and is_object(value) and value.get("error") is None:
            return _Said("", value, is_error)
    return _Said("", response, is_error)


def _told(said: _Said) -> tuple[ResultPart, ...]:
    """What is said beside media, for those who know no data."""
    text = said.text
    if said.data is not UNSET and said.data != {}:
        text = dumps(said.data).decode("utf-8")
    return (Text(text),) if text else ()


def _decode_part(wire: Any) -> ResultPart:
    part = None
    if is_object(wire):
        trace = Trace()
        fields = trace.camel(wire, _PART_NAMES)
        kinds = [kind for kind in ("inlineData", "fileData") if fields.get(kind) is not None]
        if len(kinds) == 1 and fields.keys().isdisjoint((SIGNATURE, "mediaResolution")):
            part = decode_media(fields, trace, CallIds(), None)
    return Opaque(NAME, wire) if part is None else part


def _holds_references(data: Any) -> bool:
    """Whether there is a key in it, however deep, that the API takes for a reference (W95)."""
    pending = [data]
    while pending:
        value = pending.pop()
        if isinstance(value, Mapping):
            if not _REFERENCES.isdisjoint(value):
                return True
            pending += value.values()
        elif isinstance(value, (list, tuple)):
            pending += value
    return False


# --- model → wire


def encode_result(part: ToolResult, writing: Writing) -> tuple[dict[str, Any], str | None]:
    """The function response, and what was lost."""
    call = writing.calls.get(part.call_id)
    name = part.tool_name
    if call is not None and (name is None or not writing.target.accepts_name(name)):
        name = call.name
    is_empty = name == "" and not writing.target.is_strict  # as it came
    body: dict[str, Any] = {
        "name": name if is_empty else name or _NO_NAME,
        "response": _encode_response(part),
    }
    call_id = part.call_id if call is None else wire_id(call, writing)
    if call_id is not None and writing.target.takes_tool_ids:
        body["id"] = call_id
    if part.content.__class__ is not str and (inside := _encode_content(part, name, writing)):
        body["parts"] = inside
    problem = None if name or is_empty else "the name of the tool is not known"
    return {"functionResponse": body}, problem


def _encode_response(part: ToolResult) -> Any:
    data, content = part.data, part.content
    if data is UNSET:
        text = content if isinstance(content, str) else part.text
        return {"error" if part.is_error else "output": text}
    if _holds_references(data) and not _is_from_here(part):
        data = dumps(data).decode("utf-8")  # as text nobody looks for references in it (W95)
    if is_object(data):
        has_failed = data.get("error") is not None
        if part.is_error is None or part.is_error is has_failed:
            return data
    return {"error" if part.is_error else "output": data}


def _encode_content(part: ToolResult, name: str | None, writing: Writing) -> list[Any]:
    """The media that stand in the response; the others are put aside, to stand behind it (W96)."""
    is_inside = writing.target.media_in_results
    if is_inside is None:
        is_inside = _is_from_here(part)
    inside: list[Any] = []
    outside: list[Any] = []
    for index, item in enumerate(part.content):
        if isinstance(item, (Text, Refusal)):
            continue
        body = _encode_part(item, is_inside=is_inside)
        if is_inside and getattr(item, "detail", None) not in {None, "auto"}:
            writing.lose_content(index, "a tool's media are looked at as they are")
        if not body:
            writing.lose_content(index, _NO_PLACE)
        elif is_inside:
            inside += body
        else:
            outside += body
            writing.lose_content(index, _HOISTED)
    if outside:
        writing.hoisted += [{"text": f"(Shown by the tool {name or _NO_NAME}:)"}, *outside]
    return inside


def _encode_part(part: str | ResultPart, *, is_inside: bool) -> list[Any]:
    """The part of a function response, or of a content; nothing where it has no place."""
    if isinstance(part, Opaque):
        return [part.payload] if part.dialect == NAME else []
    if not isinstance(part, (Image, Audio, Video, File)):
        return []
    body = encode_media(part)[0]
    if body is None:
        return []
    if is_inside:
        body.pop("mediaResolution", None)  # parts of a response have none
    return [as_it_came(body, part.extras)]


def _is_from_here(part: Part) -> bool:
    return part.origin is not None and part.origin.dialect == NAME


def in_call_order(written: list[Any], parts: tuple[Part, ...], writing: Writing) -> None:
    """Put results that only their order tells apart into the order of their calls (W78)."""
    named: dict[str, list[int]] = {}
    for index, part in enumerate(parts):
        if type(part) is not ToolResult:
            break  # behind the results, nothing is one
        call = writing.calls.get(part.call_id)
        if call is not None and wire_id(call, writing) is None:
            named.setdefault(call.name, []).append(index)
    for places in named.values():
        if len(places) > 1:
            ordered = sorted(places, key=lambda index: _rank(parts[index], writing))
            for place, body in zip(places, [written[index] for index in ordered], strict=True):
                written[place] = body


def _rank(part: Part, writing: Writing) -> int:
    return writing.order[part.call_id] if isinstance(part, ToolResult) else 0
