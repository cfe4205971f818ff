"""Renders a conversation for people: messages, tool calls, results and usage."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import singledispatch
from typing import Any, NamedTuple

import msgspec

from dragoman.cli.screen import harmless, harmless_line, size_of
from dragoman.model.collection import Messages
from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import dumps, indented
from dragoman.model.media import Audio, Media
from dragoman.model.messages import Message
from dragoman.model.parts import (
    Opaque,
    Part,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.requests import AnyTool, Request
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCall, ToolDefinition, ToolResult
from dragoman.model.usage import Usage
from dragoman.providers.documents.reading import Document

_MAX_INLINE = 80
_MAX_WORD = 200
_DATA = re.compile(r"[A-Za-z0-9+/_=-]{200,}")


class Line(NamedTuple):
    """A paragraph: its text, style and indentation."""

    text: str
    style: str = ""
    indent: int = 1


def lines_of(document: Document) -> Iterator[Line]:
    """The lines of a document."""
    value = document.value
    if isinstance(value, Request):
        yield from _request_lines(value, document.dialect)
    elif isinstance(value, Response):
        yield from _response_lines(value, document.dialect)
    else:
        yield _head("history", document.dialect, _count(len(value)))
        yield from _messages_lines(value)


def _count(messages: int) -> str:
    return "1 message" if messages == 1 else f"{messages} messages"


def _head(*words: str | None) -> Line:
    return Line(" · ".join(harmless_line(word) for word in words if word), "head", 0)


def _request_lines(request: Request, dialect: str) -> Iterator[Line]:
    yield _head("request", dialect, request.model, _count(len(request.messages)))
    sampling = request.sampling
    settings = [
        f"{name} {value}"
        for name in sampling.__struct_fields__
        if isinstance(value := getattr(sampling, name), (int, float))
    ]
    if settings:
        yield Line(", ".join(settings), "dim")
    for tool in request.tools:
        yield Line(_tool_line(tool), "dim")
    if request.system:
        yield Line("system", "system", 0)
        yield from _parts_lines(request.system)
    yield from _messages_lines(Messages.wrapping(request.messages))


def _tool_line(tool: AnyTool) -> str:
    if not isinstance(tool, ToolDefinition):
        return f"tool {harmless_line(tool.name)}, run by the provider"
    about = harmless_line((tool.description or "").strip().partition("\n")[0])
    return f"tool {harmless_line(tool.name)}{': ' if about else ''}{about}"


def _response_lines(response: Response, dialect: str) -> Iterator[Line]:
    yield _head("response", dialect, response.model)
    for choice in response.choices:
        yield from _message_lines(choice.message)
        if choice.finish is not None:
            yield Line(f"ended: {choice.finish.value}", "dim")
    if response.usage is not None:
        yield Line(_usage_line(response.usage), "dim", 0)


def _usage_line(usage: Usage) -> str:
    cached = f" ({usage.cache_read} cached)" if usage.cache_read else ""
    thinking = f" ({usage.thinking} thinking)" if usage.thinking else ""
    return f"tokens: {usage.total_input} in{cached}, {usage.total_output} out{thinking}"


def _messages_lines(messages: Messages) -> Iterator[Line]:
    names: dict[str, str] = {}  # tool names by call id
    for message in messages:
        names |= {call.id: call.name for call in message.tool_calls}
        yield from _message_lines(message, names)
        if message.usage is not None:
            yield Line(_usage_line(message.usage), "dim")


def _message_lines(message: Message, names: Mapping[str, str] = EMPTY) -> Iterator[Line]:
    name = f" ({harmless_line(message.name)})" if message.name else ""
    yield Line(f"{message.role.value}{name}", message.role.value, 0)
    yield from _parts_lines(_named(part, names) for part in message.parts)


def _named(part: Part, names: Mapping[str, str]) -> Part:
    """A result with the name of its tool, which only the call has."""
    if isinstance(part, ToolResult) and part.tool_name is None:
        return part.replace(tool_name=names.get(part.call_id))
    return part


def _parts_lines(parts: Iterable[Part], indent: int = 1) -> Iterator[Line]:
    for part in parts:
        for line in _lines(part):
            yield line._replace(indent=line.indent + indent - 1)


@singledispatch
def _lines(part: object) -> Iterator[Line]:
    """The lines of one part, by type."""
    yield Line(f"[{type(part).__name__}]", "dim")


@_lines.register
def _(part: Text) -> Iterator[Line]:
    yield Line(harmless(part.text))
    for citation in part.citations:
        source = citation.url or citation.title
        if source:
            yield Line(f"cites {harmless_line(source)}", "dim", 2)


@_lines.register
def _(part: Thinking) -> Iterator[Line]:
    if part.text:
        yield Line(f"thinking: {harmless(part.text)}", "dim")
    elif part.data:
        yield Line(f"[thinking, sealed, {size_of(len(part.data))}]", "dim")
    else:
        yield Line("[thinking, not shown]", "dim")


@_lines.register
def _(part: Refusal) -> Iterator[Line]:
    yield Line(f"refused: {harmless(part.text)}", "error")


@_lines.register
def _(part: Media) -> Iterator[Line]:
    yield Line(f"[{_media(part)}]", "media")
    if isinstance(part, Audio) and part.transcript:
        yield Line(harmless(part.transcript), "", 2)


def _media(part: Media) -> str:
    """The type of a media part, and its size or address; never its content."""
    words = [type(part).__name__.lower(), part.mime, part.name]
    if part.data is not None:
        words.append(size_of(len(part.data) * 3 // 4))
    elif part.url is not None and part.url[:5].lower() != "data:":
        words.append(part.url if len(part.url) <= _MAX_WORD else f"{part.url[:_MAX_WORD]}…")
    elif part.url is not None:
        words.append(size_of(len(part.url)))
    else:
        words.append("uploaded")
    return ", ".join(harmless_line(word) for word in words if word)


@_lines.register
def _(part: ToolCall) -> Iterator[Line]:
    yield Line(f"calls {harmless_line(part.name)}", "call")
    arguments = part.object_arguments()
    if arguments is None:
        yield Line(harmless(part.raw_arguments), "", 2)
    elif arguments:
        yield Line(_json(arguments), "", 2)


@_lines.register
def _(part: ToolResult) -> Iterator[Line]:
    name = f" of {harmless_line(part.tool_name)}" if part.tool_name else ""
    yield Line(f"{'error' if part.is_error else 'result'}{name}", _result_style(part.is_error))
    if not isinstance(part.content, str):
        yield from _parts_lines(part.content, indent=2)
    elif part.content or part.data is msgspec.UNSET:
        yield Line(harmless(part.content), "", 2)
    if part.data is not msgspec.UNSET and not part.content:
        yield Line(_json(part.data), "", 2)


@_lines.register
def _(part: ServerToolCall) -> Iterator[Line]:
    yield Line(f"provider runs {harmless_line(part.name)}", "call")
    if part.input:
        yield Line(_json(part.input), "", 2)


@_lines.register
def _(part: ServerToolResult) -> Iterator[Line]:
    name = harmless_line(part.name)
    yield Line(f"{'error' if part.is_error else 'result'} of {name}", _result_style(part.is_error))
    if part.content:
        yield Line(_json(part.content), "", 2)


@_lines.register
def _(part: Opaque) -> Iterator[Line]:
    yield Line(f"[part known only to {harmless_line(part.dialect)}]", "dim")
    if part.payload:
        yield Line(_json(part.payload), "dim", 2)


def _result_style(is_error: bool | None) -> str:  # noqa: FBT001 - three values, as the wire has it
    return "error" if is_error else "call"


def _json(value: Any) -> str:
    """A JSON value, on one line if short, without media data."""
    text = dumps(_without_data(value))
    if len(text) > _MAX_INLINE:
        text = indented(text)
    return harmless(text.decode("utf-8"))


def _without_data(value: Any) -> Any:
    if isinstance(value, str):
        is_data = value.startswith("data:") or _DATA.fullmatch(value)
        return f"[{size_of(len(value))}]" if is_data and len(value) >= _MAX_WORD else value
    if isinstance(value, dict):
        return {key: _without_data(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_data(inner) for inner in value]
    return value
