"""Estimates the tokens of messages, parts and tools in a prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import ceil
from typing import Any, NamedTuple

from msgspec import UNSET

from dragoman.history.media_tokens import media_tokens
from dragoman.history.text_tokens import dumped, json_tokens, text_tokens
from dragoman.model.media import Media
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
from dragoman.model.requests import AnyTool
from dragoman.model.tools import ServerTool, ToolCall, ToolResult

_PER_MESSAGE = 5
_PER_CALL = 10
_PER_RESULT = 7
_PER_TOOL = 12
_ANY_TOOL = 150
_PER_SERVER_TOOL = 300  # the provider's own description of it
_SEALED_CHARS = 10  # characters of a signature or of sealed thinking per token of thinking
_SEALED_RESULT_CHARS = 2.6


class Size(NamedTuple):
    """An estimate in three components, because providers weigh them differently."""

    text: float = 0.0
    frame: float = 0.0
    """The overhead of messages, calls and results."""
    media: int = 0

    def __add__(self, other: Size) -> Size:  # type: ignore[override]  # a sum, not concatenation
        text, frame, media = other
        return Size(self.text + text, self.frame + frame, self.media + media)

    def __sub__(self, other: Size) -> Size:
        text, frame, media = other
        return Size(self.text - text, self.frame - frame, self.media - media)

    @property
    def written(self) -> float:
        """Everything except media."""
        return self.text + self.frame

    @property
    def total(self) -> int:
        """The total in tokens."""
        return ceil(self.text + self.frame) + self.media


def size_of_message(message: Message) -> Size:
    """The estimated size of a message."""
    return size_of_parts(message.parts) + Size(text_tokens(message.name), _PER_MESSAGE)


def size_of_parts(parts: Iterable[Part]) -> Size:
    """The estimated size of parts."""
    text, frame, media = 0.0, 0.0, 0
    for part in parts:
        if isinstance(part, Media):
            media += media_tokens(part)
            continue
        frame += _FRAMES.get(type(part), 0)
        if isinstance(part, ToolResult) and not isinstance(part.content, str):
            inner = size_of_parts(part.content)
            text, frame, media = text + inner.text, frame + inner.frame, media + inner.media
        else:
            cost = _COSTS.get(type(part))
            text += cost(part) if cost else 0
    return Size(text, frame, media)


def size_of_tools(tools: Iterable[AnyTool]) -> Size:
    """The estimated size of tool definitions."""
    costs = list(map(_tool, tools))
    return Size(sum(costs) + _ANY_TOOL) if costs else Size()


def _tool(tool: AnyTool) -> float:
    if isinstance(tool, ServerTool):
        return _PER_SERVER_TOOL + json_tokens(tool.payload)
    schema = json_tokens(tool.parameters) if tool.parameters else json_tokens(tool.format)
    return _PER_TOOL + text_tokens(tool.name) + text_tokens(tool.description) + schema


def _thinking(part: Thinking) -> float:
    """The larger of text and sealed data, because the text may be only a summary."""
    sealed = len(part.data or "") + len(part.signature or "")
    return max(text_tokens(part.text), sealed / _SEALED_CHARS)


def _call(part: ToolCall) -> float:
    said = json_tokens(part.input) if part.raw is None else text_tokens(part.raw)
    return text_tokens(part.name) + said


def _result(part: ToolResult) -> float:
    said = text_tokens(part.content)
    return said if said or part.data is UNSET else json_tokens(part.data)


def _server_call(part: ServerToolCall) -> float:
    return text_tokens(part.name) + json_tokens(part.input)


def _seal(part: Part) -> float:
    """The size of a sealed part, as far as it is in its signature."""
    return len(part.signature or "") / _SEALED_CHARS


def _sealed(value: Any) -> float:
    """The size of provider-internal data, which may be sealed and then longer than its content."""
    return min(json_tokens(value), len(dumped(value)) / _SEALED_RESULT_CHARS)


_COSTS: dict[type, Callable[[Any], float]] = {
    Text: lambda part: text_tokens(part.text),
    Refusal: lambda part: text_tokens(part.text),
    Thinking: _thinking,
    ToolCall: _call,
    ToolResult: _result,
    ServerToolCall: lambda part: max(_server_call(part), _seal(part)),
    ServerToolResult: lambda part: max(_sealed(part.content), _seal(part)),
    Opaque: lambda part: _sealed(part.payload),
}
_FRAMES: dict[type, int] = {
    ToolCall: _PER_CALL,
    ServerToolCall: _PER_CALL,
    ToolResult: _PER_RESULT,
    ServerToolResult: _PER_RESULT,
}
