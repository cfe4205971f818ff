"""Renders messages as Markdown, for models and people.

Texts are quoted line by line, so that nothing in one can pass for another message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from dragoman.model.invisible import made_visible
from dragoman.model.jsontext import dumps
from dragoman.model.media import Media
from dragoman.model.messages import Message
from dragoman.model.parts import Part, Refusal, ServerToolCall, ServerToolResult, Text, Thinking
from dragoman.model.tools import ToolCall, ToolResult

_FENCE = re.compile(r"`{3,}")
_UNFIT = re.compile(r"[\t\n\r`]")
_MAX_NAME = 100


def markdown(number: int, message: Message, at: float) -> str:
    """A message under a heading with its number, role, time, model and id."""
    origin = message.origin
    facts = (
        str(number), message.role.value, message.name, origin and origin.model, moment(at),
        f"id {message.id}",
    )  # fmt: skip
    heading = " · ".join(one_line(fact) for fact in facts if fact)
    pieces = [piece for part in message.parts for piece in _pieces(part)]
    return "\n\n".join((f"### {heading}", *pieces))


def moment(at: float) -> str | None:
    """A time in ISO 8601, in UTC; None if it is invalid."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, OSError, ValueError):
        return None


def one_line(text: str) -> str:
    """A name or id for a heading: it may come from anywhere, and must not end the line."""
    line = _UNFIT.sub(" ", made_visible(text, lambda _: " "))
    return line if len(line) <= _MAX_NAME else f"{line[: _MAX_NAME - 1]}…"


def _pieces(part: Part) -> Iterator[str]:
    if isinstance(part, (Text, Refusal)):
        yield _quoted(part.text)
    elif isinstance(part, Thinking):
        yield f"*thinking*\n\n{_quoted(part.text)}" if part.text else "*thinking, not shown*"
    elif isinstance(part, ToolCall):
        yield f"*calls* `{one_line(part.name)}`\n\n{_fenced(part.raw_arguments)}"
    elif isinstance(part, ToolResult):
        yield from _result(part)
    elif isinstance(part, ServerToolCall):
        yield f"*the provider runs* `{one_line(part.name)}`\n\n{_fenced(_json(part.input))}"
    elif isinstance(part, ServerToolResult):
        yield f"*result of* `{one_line(part.name)}`\n\n{_fenced(_json(part.content))}"
    else:
        yield f"*{_described(part)}*"


def _result(part: ToolResult) -> Iterator[str]:
    yield "*error*" if part.is_error else "*result*"
    if not isinstance(part.content, str):
        for inner in part.content:
            yield from _pieces(inner)
    elif part.content or not isinstance(part.data, (dict, list)):
        yield _fenced(part.content)
    else:
        yield _fenced(_json(part.data))


def _described(part: Part) -> str:
    """A description of a part, without its data: an image's would fill a context window."""
    if isinstance(part, Media):
        kind = type(part).__name__.lower()
        return one_line(", ".join(word for word in (kind, part.mime, part.name) if word))
    return type(part).__name__.lower()


def _json(value: object) -> str:
    return dumps(value).decode()


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in re.split(r"\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]", text))


def _fenced(text: str) -> str:
    fence = "`" * max((len(found) + 1 for found in _FENCE.findall(text)), default=3)
    return f"{fence}\n{text}\n{fence}"
