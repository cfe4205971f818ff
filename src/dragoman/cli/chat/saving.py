"""A conversation as a file: canonical JSON, or Markdown to read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.chat.attaching import typed_path
from dragoman.cli.exit_codes import FILES, USAGE, Ending
from dragoman.model.collection import Messages
from dragoman.model.media import Media
from dragoman.model.messages import Message
from dragoman.model.parts import Part, Refusal, Text, Thinking
from dragoman.model.tools import ToolCall, ToolResult

if TYPE_CHECKING:
    from dragoman.cli.chat.talk import Talk

_READABLE = {".md", ".markdown", ".txt"}


def save(talk: Talk, name: str) -> None:
    """Write the conversation to a file; one that somebody else wrote stays as it is."""
    path = _path(talk, name)
    messages = talk.run(talk.history.messages())
    if not messages:
        raise Ending(USAGE, "nothing has been said yet")
    is_readable = path.suffix.lower() in _READABLE
    content = readable(messages).encode(errors="replace") if is_readable else messages.to_json()
    try:
        if path.exists() and path != talk.saved_as:
            raise Ending(FILES, f"{path}: there is a file of that name already")
        path.write_bytes(content)
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or "that is no name of a file"
        raise Ending(FILES, f"{path}: {problem}") from None
    talk.saved_as = path
    talk.screen.note(f"{len(messages)} messages are in {path}")


def _path(talk: Talk, name: str) -> Path:
    if name:
        return typed_path(name.strip("'\""))
    if talk.saved_as is not None:
        return talk.saved_as
    chat = talk.history.identity.chat or "chat"
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in chat)
    return Path(f"{safe.lstrip('.') or 'chat'}.json")


def readable(messages: Messages) -> str:
    """A conversation in Markdown."""
    return "\n\n".join(f"## {_head(message)}\n\n{_body(message)}" for message in messages) + "\n"


def _head(message: Message) -> str:
    origin = message.origin
    model = f" ({origin.model})" if origin is not None and origin.model else ""
    return f"{message.role.value}{model}"


def _body(message: Message) -> str:
    return "\n\n".join(_written(message)) or "(nothing)"


def _written(message: Message) -> Iterator[str]:
    for part in message.parts:
        if (text := _part(part)) is not None:
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
    """A text in a fence that nothing in it ends."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"
