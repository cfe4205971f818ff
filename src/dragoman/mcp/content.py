"""Converts between MCP content and message parts. Nothing is ever fetched."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Iterable, Sequence
from typing import Any

import mcp_types as types
from msgspec import UNSET

from dragoman.agent.tool_results import whole_characters
from dragoman.errors import InvalidInputError, WireError
from dragoman.model.frozen import freeze
from dragoman.model.ids import new_id
from dragoman.model.jsontext import dumps, loads
from dragoman.model.media import Audio, File, Image, Media, Video, sniff
from dragoman.model.parts import Part, Text
from dragoman.model.tools import ResultPart, ToolResult, make_result
from dragoman.model.validation.problems import in_sentences, problems

_SNIFF_BYTES = 32
_KINDS: dict[str, type[Image | Audio | Video | File]] = {
    "image": Image,
    "audio": Audio,
    "video": Video,
    "application/pdf": File,
}
_MAX_NOTE = 500


def tool_result(result: types.CallToolResult, schema: Any, name: str) -> ToolResult:
    """The result of a call, with structured content as `data`; raises if it violates its schema.

    Servers repeat structured results as JSON text for older clients: that copy is dropped. If there
    is other content, all of it is kept, including the JSON, because most dialects only have room
    for one of the two. A plain text, which the SDK's servers wrap in an object as `result`, becomes
    the content.
    """
    parts = [part for block in result.content for part in parts_of(block)]
    data: Any = UNSET
    if "structured_content" in result.model_fields_set and result.structured_content is not None:
        data = _frozen(result.structured_content, name)
    if schema is not None and not result.is_error:
        _check(data, schema, name)
    content = _content(parts, data)
    return make_result(new_id("call_"), content, data, name, is_error=result.is_error)


def _content(parts: list[ResultPart], data: Any) -> str | tuple[ResultPart, ...]:
    only = parts[0].text if len(parts) == 1 and isinstance(parts[0], Text) else None
    if data is UNSET or (only is not None and data == {"result": only}):
        return tuple(parts) if only is None and parts else only or ""
    others = [part for part in parts if not _repeats(part, data)]
    if not others:
        return ""
    is_said = len(others) < len(parts)
    return tuple(parts) if is_said else (*parts, Text(dumps(data).decode()))


def error_result(text: str, name: str) -> ToolResult:
    """The result of a call that the server rejected, with its message."""
    said = whole_characters(text) or "The server gave no reason."
    return make_result(new_id("call_"), said, tool_name=name, is_error=True)


def _frozen(value: Any, name: str) -> Any:
    try:
        return freeze(value)
    except InvalidInputError as error:
        problem = str(error)
    msg = f"the structured result of `{name}` is invalid: {problem}"
    raise WireError(msg, dialect="mcp")


def _check(data: Any, schema: Any, name: str) -> None:
    if data is UNSET:
        msg = f"`{name}` returned no structured result, which its output schema requires"
        raise WireError(msg, dialect="mcp")
    found = problems(schema, data)
    if found:
        msg = f"the result of `{name}` does not match its output schema: {in_sentences(found)}"
        raise WireError(msg, dialect="mcp")


def _repeats(part: Part, data: Any) -> bool:
    if not isinstance(part, Text):
        return False
    try:
        return bool(freeze(loads(part.text)) == data)
    except InvalidInputError:
        return bool(part.text == data)


def parts_of(block: Any) -> Sequence[ResultPart]:
    """The parts of a content block."""
    match block:
        case types.TextContent():
            return (Text(whole_characters(block.text)),)
        case types.ImageContent() | types.AudioContent():
            return (_media(block.data, block.mime_type, "", block.type),)
        case types.EmbeddedResource():
            return (resource_part(block.resource),)
        case types.ResourceLink():
            return (Text(_link(block)),)
        case _:
            return (_note(f"content of unknown type: {type(block).__name__}"),)


def resource_part(resource: types.TextResourceContents | types.BlobResourceContents) -> ResultPart:
    """The content of a resource: text with its URI, or media."""
    if isinstance(resource, types.TextResourceContents):
        return Text(f"{_short(resource.uri)}\n{whole_characters(resource.text)}")
    return _media(resource.blob, resource.mime_type, resource.uri, "file")


def _media(data: str, mime: str | None, uri: str, what: str) -> ResultPart:
    """Media, if its first bytes identify a type that some provider accepts; otherwise a note.

    Other media would stay in the conversation and fail every later request.
    """
    where = f" ({_short(uri)})" if uri else ""
    try:
        content = b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return _note(f"{what}{where} that is not valid base64")
    found = sniff(content[:_SNIFF_BYTES]) or ""
    kind = _KINDS.get(found) or _KINDS.get(found.partition("/")[0])
    if kind is not None:
        if kind is Image and what == "audio":
            return _note(f"{what}{where} that is an image")
        name = _short(uri.rpartition("/")[2]) if kind is File else ""
        return kind(data=data, mime=found, name=name or None)
    if (text := _as_text(content)) is not None and what == "file":
        return Text(f"{_short(uri)}\n{text}")
    said = f" of type {_short(mime)}" if mime else ""
    return _note(f"{what}{where}{said}, {len(content):,} bytes, which can't be shown")


def _as_text(content: bytes) -> str | None:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _link(link: types.ResourceLink) -> str:
    """A resource on the server, which can be read by its URI."""
    said = [f"[resource: {_short(link.title or link.name)}", _short(link.uri)]
    said += [_short(each) for each in (link.mime_type, link.description) if each]
    return f"{', '.join(said)}]"


def _note(text: str) -> Text:
    return Text(f"[{text}]")


def _short(text: str) -> str:
    text = whole_characters(text)
    return text if len(text) <= _MAX_NOTE else f"{text[:_MAX_NOTE]}…"


# --- to the server


def blocks_of(
    parts: Iterable[Any],
) -> list[types.TextContent | types.ImageContent | types.AudioContent]:
    """A model's answer, for a server that requested it; unsupported parts are left out."""
    blocks: list[types.TextContent | types.ImageContent | types.AudioContent] = []
    for part in parts:
        if isinstance(part, Text):
            blocks.append(types.TextContent(type="text", text=whole_characters(part.text)))
        elif isinstance(part, Media) and part.data is not None:
            if isinstance(part, Image):
                mime = part.mime or "image/png"
                blocks.append(types.ImageContent(type="image", data=part.data, mime_type=mime))
            elif isinstance(part, Audio):
                mime = part.mime or "audio/wav"
                blocks.append(types.AudioContent(type="audio", data=part.data, mime_type=mime))
    return blocks
