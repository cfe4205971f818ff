"""Renders a conversation as Markdown, for reading: what only a name is left of is a loss."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dragoman.interop.text_files import attached_names, content_of
from dragoman.model.collection import Messages
from dragoman.model.media import Media
from dragoman.model.messages import Message
from dragoman.model.parts import Part, Refusal, Text, Thinking
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.wire.losses import Loss

_NAMED_ONLY = "only its kind or name is in Markdown"
_ONE_LINE = re.compile(r"\s+")


def markdown(messages: Messages, title: str = "") -> str:
    """The conversation as Markdown."""
    if title:
        return f"# {_ONE_LINE.sub(' ', title)}\n\n{markdown(messages)}"
    return "\n\n".join(f"## {_head(message)}\n\n{_body(message)}" for message in messages) + "\n"


def markdown_losses(messages: Messages) -> list[Loss]:
    """What Markdown doesn't hold: media, and what a provider keeps for itself."""
    return [
        Loss(f"messages[{number}].parts[{place}]", _NAMED_ONLY)
        for number, message in enumerate(messages)
        for place, part in enumerate(message.parts)
        if not isinstance(part, (Text, Refusal, Thinking, ToolCall, ToolResult))
    ]


def _head(message: Message) -> str:
    origin = message.origin
    model = f" ({origin.model})" if origin is not None and origin.model else ""
    return f"{message.role.value}{model}"


def _body(message: Message) -> str:
    return "\n\n".join(_written(message)) or "(empty)"


def _written(message: Message) -> Iterator[str]:
    files = attached_names(message)
    for place, part in enumerate(message.parts):
        name = files.get(str(place))
        if name is not None and isinstance(part, Text):
            yield f"{_ONE_LINE.sub(' ', name)}:\n\n{_fenced(content_of(part.text, name))}"
        elif (text := _part(part)) is not None:
            yield text


def _part(part: Part) -> str | None:
    match part:
        case Text() | Refusal():
            return part.text
        case Thinking():
            return "\n".join(f"> {line}" for line in part.text.split("\n")) if part.text else None
        case ToolCall():
            return _fenced(f"{part.name} {part.raw_arguments}")
        case ToolResult():
            return _fenced(part.text)
        case Media():
            return f"*({type(part).__name__.lower()}: {part.name or part.mime or 'attached'})*"
        case _:
            return f"*({type(part).__name__})*"


def _fenced(text: str) -> str:
    """The text in a code fence longer than any fence inside it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"
