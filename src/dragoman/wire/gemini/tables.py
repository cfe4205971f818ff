"""The parts of contents as rows: which field of the wire is which field of the model.

A part is told by the one data field that it has (W76).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from functools import partial
from typing import Any

from msgspec import UNSET, UnsetType

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import dumps
from dragoman.model.media import Audio, File, Image, Media, Video
from dragoman.model.parts import (
    Opaque,
    Part,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.tools import ToolCall, ToolResult, make_call, make_result
from dragoman.wire.call_ids import CallIds
from dragoman.wire.cut_calls import is_left_out
from dragoman.wire.envelope import is_sealed
from dragoman.wire.gemini.dialect import NAME, ORIGIN, SIGNATURE, STAND_INS, Writing
from dragoman.wire.gemini.tools_provider import is_from_metadata
from dragoman.wire.json_values import is_object
from dragoman.wire.overlay import Overlay, merged, with_overlay, with_word, words_of
from dragoman.wire.reading import Reading
from dragoman.wire.rows import ANY, LIST, OBJECT, SILENT, TEXT, KeyUnion, Row, Shape, Value
from dragoman.wire.tolerance import bare_text

Wire = dict[str, Any]
_needed = partial(Row, is_required=True)
_owned = partial(Row, is_required=True, takes_owner=True)

# --- signatures, which any part may have

FOREIGN_SIGNATURE = "another provider's signature is left out"


def _read_signature(signature: str) -> str | None:
    """A placeholder is not a signature: it is only restored in this dialect."""
    return None if signature in STAND_INS else signature


def _write_signature(part: Part, writing: Writing) -> str | None:
    if part.signature is None or writing is SILENT:
        return part.signature
    is_envelope = writing.is_response and is_sealed(part)  # made by the front
    if is_envelope or writing.target.has_made(writing.origin_of(part)):
        return part.signature
    writing.lose_here(FOREIGN_SIGNATURE)
    return None


_SIGNED = Row(
    SIGNATURE, "signature",
    Value(TEXT.test, _read_signature, _write_signature, "a signature", exact=True),
    reports=True, takes_owner=True,
)  # fmt: skip
_part = partial(Shape, NAME, None, twins=True, keeps_origin="signature")


# --- texts and thoughts


def _may_cite(part: Text, writing: Writing) -> None:
    if part.citations and not writing.is_response:
        writing.lose_here("citations are not supported")


def _as_text(_part: Refusal, writing: Writing) -> None:
    writing.lose_here("a refusal is sent as text")


def _may_think(part: Thinking, writing: Writing) -> str | None:
    is_foreign = writing.is_foreign(part)
    if is_foreign and not writing.is_response:
        return "another provider's thinking can't be replayed"
    is_encrypted = part.data is not None
    if is_encrypted or (is_foreign and not part.text):
        writing.lose_here("encrypted thinking is not supported")
    return None if part.text or not (is_encrypted or is_foreign) else ""


def _read_text(wire: Wire, reading: Reading) -> AnyPart:
    return (_THOUGHT if wire.get("thought") is True else _TEXT).read(wire, reading)


_SAID = _needed("text", "text")
_IS_THOUGHT = Value("v is True", lambda _: "summary", lambda _: True, "true", exact=True)
_TEXT = _part(Text, _SAID, _SIGNED, key="text", reads=_read_text, allows=_may_cite)
_THOUGHT = _part(Thinking, _SAID, _needed("thought", "form", _IS_THOUGHT), _SIGNED, key="text",
                 allows=_may_think, fields=("data",))  # fmt: skip
"""The API only sends summaries of thoughts."""
_REFUSAL = _part(Refusal, _SAID, _SIGNED, key="text", allows=_as_text)


def _read_lone_signature(wire: Wire, reading: Reading) -> AnyPart:
    """A signature alone belongs at this position among the parts, and must not be lost (W85)."""
    kept = Overlay(NAME)
    fields = kept.renamed(wire, _LONE.names[""])
    if type(fields.get(SIGNATURE)) is not str:
        return _LONE.unread(wire, reading)
    if "text" in fields:
        kept.value(("text",), "", None)
    else:
        kept.absent(("text",), "")
    part: Any = _TEXT.read({**fields, "text": ""}, reading)
    return part.replace(extras=merged(kept.extras(), part.extras))  # type: ignore[no-any-return]


_LONE = _part(Text, _SIGNED._replace(is_required=True), key=SIGNATURE, reads=_read_lone_signature,
              fits=lambda _: False)  # fmt: skip


# --- media, inline as base64 (`inlineData`) or by URI (`fileData`)

_MEDIA: dict[str, type[Media]] = {"image": Image, "audio": Audio, "video": Video}
_FALLBACK_MIMES: dict[type[Media], str] = {
    Image: "image/png",
    Audio: "audio/wav",
    Video: "video/mp4",
}
_LEVELS = {f"MEDIA_RESOLUTION_{word.upper()}": word
           for word in ("low", "medium", "high", "ultra_high")}  # fmt: skip
_LEVEL_OF = {detail: level for level, detail in _LEVELS.items()}
_NEAREST_DETAIL = {"original": "ultra_high"}
"""Details of other APIs, and the nearest one here."""
_URL_SAFE = "url-safe"
"""The note for URL-safe base64: google-genai sends it, and no other API accepts it."""
_IS_URL_SAFE = with_word(EMPTY, NAME, _URL_SAFE)
_FROM_URL_SAFE, _TO_URL_SAFE = str.maketrans("-_", "+/"), str.maketrans("+/", "-_")
_UPLOADS = "https://generativelanguage.googleapis.com/v1beta/"


def _made_media(mime: str | None = None, *, is_video: bool, **fields: Any) -> Any:
    kind: type[Media] = Video if is_video else File
    if mime is not None:
        kind = _MEDIA.get(mime.partition("/")[0], File)
    return kind(mime=mime, **fields)


def _may_send(part: Media, writing: Writing) -> str | None:
    if part.file_id is not None and not part.file_id.startswith("files/"):
        return "a file uploaded to another provider is left out"
    if isinstance(part, Audio) and part.transcript:
        writing.lose_here("transcripts are not supported; only the audio is sent")
    return None


def _read_data(data: str) -> Wire:
    if ("-" in data or "_" in data) and "+" not in data and "/" not in data:
        return {"data": data.translate(_FROM_URL_SAFE), "extras": _IS_URL_SAFE}
    return {"data": data}


def _write_data(part: Media) -> str | None:
    is_url_safe = part.data is not None and _URL_SAFE in words_of(part.extras, NAME)
    return part.data.translate(_TO_URL_SAFE) if is_url_safe else part.data  # type: ignore[union-attr]


def _write_mime(part: Media) -> str:
    fallback = _FALLBACK_MIMES.get(type(part), "application/octet-stream")
    return fallback if part.mime is None else part.mime


def _write_uri(part: Media) -> str:
    return part.url if part.url is not None else f"{_UPLOADS}{part.file_id or ''}"


def _write_level(detail: str, writing: Writing) -> str | None:
    if detail in _NEAREST_DETAIL:
        reason = "the image detail is sent as the nearest supported one"
        writing.repair_here("I14", "retyped", reason)
        detail = _NEAREST_DETAIL[detail]
    elif detail != "auto" and detail not in _LEVEL_OF:
        writing.lose_here("this image detail is not supported")
    return _LEVEL_OF.get(detail)


_DATA = Value(TEXT.test, _read_data, _write_data, "base64", exact=True)
_URI = Value(TEXT.test, lambda uri: {"url": uri}, _write_uri, "a URI", exact=True)
_MIME = TEXT._replace(write=_write_mime, exact=True)
_INLINE = (
    _owned("inlineData.data", "", _DATA),
    Row("inlineData.mimeType", "mime", _MIME, always=True, takes_owner=True),
    Row("inlineData.displayName", "name"),
)
_LINKED = (
    _owned("fileData.fileUri", "", _URI),
    Row("fileData.mimeType", "mime"),
    Row("fileData.displayName", "name"),
)
_LEVEL = Value(TEXT.test, _LEVELS.get, _write_level, "a level", exact=True)
_DETAIL = Row("mediaResolution.level", "detail", _LEVEL, reports=True)


def _media(*more: Row) -> list[Shape[Any]]:
    """The shapes of media with further rows."""
    made = partial(
        _part, make=_made_media, allows=_may_send, fields=("data", "url", "file_id"),
        given={"is_video": "'videoMetadata' in w or 'video_metadata' in w"},
    )  # fmt: skip
    return [
        shape
        for kind in (Image, Audio, Video, File)
        for shape in (
            made(kind, *_INLINE, *more, key="inlineData", fits=lambda part: part.data is not None),
            made(kind, *_LINKED, *more, key="fileData"),
        )
    ]


# --- function calls

_WRAPPED = "arguments that are not a JSON object are wrapped in one"


def _made_call(
    r: Reading, name: str, args: Any = None, wire_id: str | None = None, **fields: Any
) -> ToolCall | None:
    if args is not None and not is_object(args):
        return None
    call_id, given_id = r.calls.add_named_call(name, wire_id, args)
    # Missing arguments are an empty text (W80).
    return make_call(call_id, name, "" if args is None else None, args, wire_id=given_id, **fields)


def _may_call(call: ToolCall, writing: Writing) -> str | None:
    """Whether a call was not cut off (I7); then its result may follow."""
    if is_left_out(call, call.object_arguments(), writing):
        return ""
    writing.add_call(call)
    return None


def _write_arguments(call: ToolCall, writing: Writing) -> Mapping[str, Any] | None:
    arguments = call.object_arguments()
    if arguments is None:
        if call.kind != "custom":
            # Any value but an object would make the conversation unusable (I6).
            writing.repair_here("I6", "retyped", _WRAPPED)
        return {"input": call.raw}
    return arguments if call.raw is None or call.raw.strip() else None


def wire_id(call: ToolCall, writing: Writing) -> str | None:
    """The id of a call on the wire; None if it has none, as ids are optional (W81)."""
    if writing is not SILENT and not writing.target.ids.are_allowed:
        return None
    return call.id if isinstance(call.wire_id, UnsetType) else call.wire_id


_ARGUMENTS = Value(ANY.test, lambda args: {"args": args}, _write_arguments, "an object", exact=True)
_WIRE_ID = TEXT._replace(write=wire_id, exact=True)
_CALL = _part(
    ToolCall,
    _needed("functionCall.name", "name"),
    Row("functionCall.args", "", _ARGUMENTS, reports=True),
    Row("functionCall.id", "wire_id", _WIRE_ID, reports=True, takes_owner=True),
    _SIGNED,
    key="functionCall", make=_made_call, allows=_may_call, given={"r": "r"},
    fields=("id", "raw", "input", "kind"),
)  # fmt: skip


# --- function responses
#
# A response is an object (W82). Ours have a single key: `output` for the text or data of a result,
# `error` for those of a failure. Such objects are decoded the same way; any other is data.

_REFERENCES = frozenset({"$ref", "$defs"})
_NO_NAME = "unknown"
_NO_STATE = Reading(None, CallIds())
"""For media in results, which have neither signatures nor calls."""


def _read_result(wire: Wire, reading: Reading) -> AnyPart:
    """Decode a response as if it had the id of our call, and an object."""
    key = "functionResponse" if "functionResponse" in wire else "function_response"
    body, kept, path = wire[key], Overlay(NAME), ("functionResponse",)
    if not is_object(body) or type(name := body.get("name")) is not str:
        return _RESULT.unread(wire, reading)
    given = body.get("id")
    call_id, ours = reading.calls.answer_named(name, given if type(given) is str else None)
    if ours is None and "id" in body:
        kept.fields["functionResponse"] = {"id": given}
    elif ours is not None and "id" not in body:
        kept.absent((*path, "id"), ours)
    elif given != ours:
        kept.value((*path, "id"), ours, given)
    body, response = {**body, "id": call_id}, body.get("response")
    if not is_object(response):
        body["response"] = {"output": "" if response is None else response}
        if "response" in wire[key]:
            kept.value((*path, "response"), body["response"], response)
        else:
            kept.absent((*path, "response"), body["response"])
    made: Any = _RESULT.read({**wire, key: body}, reading)
    extras = kept.extras()
    return made.replace_unchecked(extras=merged(made.extras, extras)) if extras else made  # type: ignore[no-any-return]


def _read_response(response: Wire) -> Wire:
    is_error = True if response.get("error") is not None else None
    if len(response) == 1:
        ((key, value),) = response.items()
        if key == "output" or (key == "error" and is_error):
            if type(value) is str:
                return {"content": value, "is_error": is_error}
            if not is_object(value) or (key == "error" and value.get("error") is None):
                return {"data": value, "is_error": is_error}
    return {"data": response, "is_error": is_error}


def _made_result(
    tool_name: str, call_id: str = "", content: Any = "", data: Any = UNSET, media: Any = (),
    origin: Any = None, **fields: Any,
) -> ToolResult:  # fmt: skip
    if media:
        has_data = data is not UNSET and data != {}
        said = dumps(data).decode("utf-8") if has_data else content
        content = (*((Text(said),) if said else ()), *media)
    if media or holds_references(data):
        origin = ORIGIN  # restored unchanged, only in this dialect
    return make_result(call_id, content, data, tool_name, origin=origin, **fields)


def _name_of(part: ToolResult, writing: Writing) -> str | None:
    name, call = part.tool_name, writing.calls.get(part.call_id)
    is_fine = name is not None and writing.target.tools.accepts_name(name)
    return name if call is None or is_fine else call.name


def _write_name(part: ToolResult, writing: Writing) -> str:
    name = part.tool_name if writing is SILENT else _name_of(part, writing)
    if writing is SILENT:
        return name or ""
    if name == "" and not writing.target.is_strict:  # the original was empty
        return name
    if not name:
        writing.lose_here("the tool name is unknown")
    return name or _NO_NAME


def _write_call_id(part: ToolResult, writing: Writing) -> str | None:
    if writing is SILENT:
        return part.call_id
    call = writing.calls.get(part.call_id)
    if call is not None:
        return wire_id(call, writing)
    return part.call_id if writing.target.ids.are_allowed else None


def _write_response(part: ToolResult) -> Any:
    data, content = part.data, part.content
    key = "error" if part.is_error else "output"
    if data is UNSET:
        return {key: content if isinstance(content, str) else part.text}
    if holds_references(data) and not _is_from_here(part):
        data = dumps(data).decode("utf-8")  # references in text are not interpreted (W95)
    if is_object(data):
        has_failed = data.get("error") is not None
        if part.is_error is None or part.is_error is has_failed:
            return data
    return {key: data}


def _read_shown(wire: list[Any], _reading: Reading) -> Wire | None:
    return {"media": tuple([_IN_RESULTS.read(each, _NO_STATE) for each in wire])} if wire else None


def _write_shown(part: ToolResult, writing: Writing) -> list[Any] | None:
    """Encode the media in a response; unsupported ones are kept to be sent after it (W96)."""
    if part.content.__class__ is str:
        return None
    is_inside = True if writing is SILENT else writing.target.media.in_results
    if is_inside is None:
        is_inside = _is_from_here(part)
    written: list[Any] = []
    for index, item in enumerate(part.content):
        if isinstance(item, (Text, Refusal)):
            continue
        writing.item = index
        body = _shown(item, _IN_RESULTS if is_inside else _AFTER_RESULTS)
        if is_inside and getattr(item, "detail", None) not in {None, "auto"}:
            writing.lose_here("image detail is not supported in a tool result")
        if body is UNSET:
            writing.lose_here("this content is not supported in a tool result")
            continue
        written.append(body)
        if not is_inside:
            writing.lose_here("media of a tool result are moved after the results (W96)")
    writing.item = None
    if is_inside or not written:
        return written or None
    name = _name_of(part, writing) or _NO_NAME
    writing.hoisted += [{"text": f"(Shown by the tool {name}:)"}, *written]
    return None


def _shown(part: Any, media: KeyUnion) -> Any:
    """A part of a result as it is, without a signature; `UNSET` if it is not supported."""
    if isinstance(part, Opaque):
        return part.payload if part.dialect == NAME else UNSET
    shape = media.shape_for(part)
    if shape is None or _may_send(part, SILENT) is not None:
        return UNSET
    return with_overlay(shape.body(part, SILENT), part.extras, NAME)


def _is_from_here(part: Part) -> bool:
    return part.origin is not None and part.origin.dialect == NAME


_IN_RESULTS, _AFTER_RESULTS = KeyUnion(NAME, *_media()), KeyUnion(NAME, *_media(_DETAIL))
_CALL_ID = TEXT._replace(write=_write_call_id, exact=True)
_NAME = TEXT._replace(write=_write_name, exact=True)
_RESPONSE = Value(OBJECT.test, _read_response, _write_response, OBJECT.about, exact=True)
_SHOWN = Value(LIST.test, _read_shown, _write_shown, "a list of media", exact=True)
_RESULT = _part(
    ToolResult,
    _owned("functionResponse.name", "tool_name", _NAME, reports=True),
    _owned("functionResponse.response", "", _RESPONSE),
    Row("functionResponse.id", "call_id", _CALL_ID, reports=True, takes_owner=True),
    Row("functionResponse.parts", "", _SHOWN, deep=True),
    _SIGNED,
    key="functionResponse", reads=_read_result, make=_made_result,
    fields=("content", "data", "is_error", "kind"),
)  # fmt: skip


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


# --- calls of built-in tools: code execution, and the tools that Gemini 3 reports

_OK = "OUTCOME_OK"
_CODE = "code_execution"
"""Our name for the tool whose parts have no name; other tools' names are in upper case."""


def _may_replay(part: ServerToolCall | ServerToolResult, writing: Writing) -> str | None:
    if writing.is_foreign(part):
        return "another provider's built-in tools can't be replayed"
    return "" if is_from_metadata(part) else None  # then it is not content


def _read_code(wire: Wire) -> Wire:
    call_id = wire.get("id")
    if type(call_id) is not str:
        return {"name": _CODE, "call_id": None, "input": wire}
    left = {key: value for key, value in wire.items() if key != "id"}
    return {"name": _CODE, "call_id": call_id, "input": left}


def _read_outcome(wire: Wire) -> Wire:
    found = _read_code(wire)
    found["content"], outcome = found.pop("input"), wire.get("outcome")
    return {**found, "is_error": outcome != _OK if type(outcome) is str else None}


def _write_code(part: ServerToolCall) -> Wire:
    is_whole = is_object(part.input)
    return _with_id(part, part.input if is_whole else {"language": "PYTHON", "code": part.input})


def _write_outcome(part: ServerToolResult) -> Wire:
    outcome, content = "OUTCOME_FAILED" if part.is_error else _OK, part.content
    if not is_object(content):
        content = {"outcome": outcome, "output": content}
    elif part.is_error is not None and (content.get("outcome") == _OK) is bool(part.is_error):
        content = {**content, "outcome": outcome}
    return _with_id(part, content)


def _with_id(part: ServerToolCall | ServerToolResult, wire: Wire) -> Wire:
    return dict(wire) if part.call_id is None else {**wire, "id": part.call_id}


def _code(kind: type[Part], key: str, read: Callable[..., Wire], write: Callable[..., Wire]) -> Any:
    value = Value(OBJECT.test, read, write, OBJECT.about, exact=True)
    return _server(kind, _owned(key, "", value), _SIGNED, key=key,
                   fits=lambda part: part.name == _CODE,
                   fields=("name", "call_id", "input", "content", "is_error"))  # fmt: skip


def _reported(kind: type[Part], key: str, wire: str, field: str) -> Any:
    name = TEXT._replace(test=f"{TEXT.test} and v != {_CODE!r}")
    return _server(kind, _needed(f"{key}.toolType", "name", name), Row(f"{key}.id", "call_id"),
                   Row(f"{key}.{wire}", field, ANY), _SIGNED, key=key,
                   fields=("is_error",))  # fmt: skip


_server = partial(Shape, NAME, None, twins=True, keeps_origin=True, allows=_may_replay)
_SERVER = (
    _code(ServerToolCall, "executableCode", _read_code, _write_code),
    _reported(ServerToolCall, "toolCall", "args", "input"),
    _code(ServerToolResult, "codeExecutionResult", _read_outcome, _write_outcome),
    _reported(ServerToolResult, "toolResponse", "response", "content"),
)

# --- all of them

PARTS = KeyUnion(
    NAME, _TEXT, _THOUGHT, _REFUSAL, *_media(_DETAIL, _SIGNED), _CALL, _RESULT, *_SERVER, _LONE
)


def decode_part(wire: Any, reading: Reading) -> AnyPart:
    """Decode a part of any kind."""
    if type(wire) is str:
        return bare_text(wire, {"text": wire}, NAME)
    part: AnyPart = PARTS.read(wire, reading)
    return part


def decode_parts(wire: Iterable[Any], reading: Reading) -> tuple[AnyPart, ...]:
    """Decode the parts of a content."""
    parts: list[AnyPart] = []
    for item in wire:
        # Shortcut for the most common part.
        if type(item) is dict and len(item) == 1 and type(text := item.get("text")) is str:
            parts.append(Text(text))
        else:
            parts.append(decode_part(item, reading))
    return tuple(parts)


def encode_part(part: AnyPart, writing: Writing) -> list[Any]:
    """Encode the current part of `writing`; empty if it is left out."""
    body = PARTS.write(part, writing)
    if body is UNSET:
        return []
    # A part that was only a signature would be an empty text without it.
    return [{"text": ""} if body == {} and type(part) is Text else body]


def encode_parts(parts: tuple[AnyPart, ...], message: int, writing: Writing) -> list[Any]:
    """Encode the parts of a message; unsupported parts are left out and reported."""
    written: list[Any] = []
    writing.message = message
    for writing.part, part in enumerate(parts):
        # Shortcut for the most common part.
        if type(part) is Text and part.signature is None and not (part.extras or part.citations):
            written.append({"text": part.text})
        else:
            written += encode_part(part, writing)
    return written
