"""Renders messages as Markdown, for notebooks.

Texts are rendered as block quotes with HTML escaped, so that their content can't be mistaken for
our markup or be rendered as HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from dragoman.model.jsontext import dumps
from dragoman.model.parts import Part, Refusal, Text, Thinking
from dragoman.model.tools import ToolCall, ToolResult

if TYPE_CHECKING:
    from dragoman.model.messages import Message

_MARKUP = re.compile(r"[<&]")
_FENCE = re.compile(r"`{3,}")
_MAX_CHARS = 20_000


def markdown(messages: Iterable[Message]) -> str:
    """The messages as Markdown, one block each."""
    return "\n\n".join(_block(message) for message in messages)


def _block(message: Message) -> str:
    pieces = [piece for part in message.parts for piece in _pieces(part)]
    return "\n\n".join((f"**{message.role.value}**", *pieces))


def _pieces(part: Part) -> Iterator[str]:
    if isinstance(part, (Text, Refusal)):
        yield _quoted(part.text)
    elif isinstance(part, Thinking):
        yield f"*thinking*\n\n{_quoted(part.text)}" if part.text else "*thinking, not shown*"
    elif isinstance(part, ToolCall):
        yield f"*calls* `{_code(part.name)}`\n\n{_fenced(part.raw_arguments)}"
    elif isinstance(part, ToolResult):
        told = part.content if isinstance(part.content, str) else repr(part)
        is_data = not told and isinstance(part.data, (dict, list))
        yield f"*result*\n\n{_fenced(dumps(part.data).decode() if is_data else told)}"
    else:
        yield f"*{part!r}*"


def _quoted(text: str) -> str:
    clipped = text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}… ({len(text)} characters)"
    safe = _MARKUP.sub(lambda found: "&lt;" if found[0] == "<" else "&amp;", clipped)
    return "\n".join(f"> {line}" for line in safe.splitlines() or [""])


def _fenced(text: str) -> str:
    longest = max((len(found) for found in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text[:_MAX_CHARS]}\n{fence}"


def _code(name: str) -> str:
    return name.replace("`", "'")
