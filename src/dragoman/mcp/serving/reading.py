"""Reads the messages of a session in pages of limited size, however large a message is."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from dragoman.errors import ConfigError, InvalidInputError
from dragoman.history.branches import stretches
from dragoman.history.storage.protocol import Row, Session, Storage
from dragoman.history.stored_session import Keeper
from dragoman.mcp.serving.served_sessions import ENCRYPTED
from dragoman.model.collection import Messages
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


_ROWS_PER_READ = 16  # rows read together: one may contain a video


class Numbered(NamedTuple):
    """A message, and its number in the session."""

    number: int
    message: Message
    at: float
    size: int
    """Its size as JSON, in bytes."""


class Wanted(NamedTuple):
    """Which messages of a session to read; by default the last ones."""

    limit: int
    max_chars: int
    branch: int | None = None
    after: int | None = None
    before: int | None = None


class Page(NamedTuple):
    """Some messages, in order, as text."""

    branch: int
    numbers: list[int]
    text: str
    more_before: bool
    more_after: bool
    unreadable: list[str]


async def read_markdown(storage: Storage, session: Session, wanted: Wanted) -> Page:
    """A page as Markdown; a single message that is too long is truncated, with a note."""
    return await _Reading(storage, session, wanted).page(_Markdown(wanted.max_chars))


async def read_json(storage: Storage, session: Session, wanted: Wanted) -> Page:
    """A page as a canonical JSON document, which is never truncated."""
    return await _Reading(storage, session, wanted).page(_Json(wanted.max_chars))


class _Markdown:
    """Markdown blocks, up to a number of characters."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._blocks: dict[int, str] = {}

    def takes(self, each: Numbered) -> bool:
        """Add a message, if it fits."""
        block = markdown(each.number, each.message, each.at)
        if len(block) > self._room:
            if self._blocks:
                return False
            left_out = len(block) - self._room
            block = f"{block[: self._room]}\n\n*({left_out:,} more characters were left out)*"
        self._blocks[each.number] = block
        self._room -= len(block)
        return True

    def text(self) -> str:
        return "\n\n".join(self._blocks[number] for number in sorted(self._blocks))


class _Json:
    """Messages in one document, up to a number of bytes."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._messages: dict[int, Message] = {}

    def takes(self, each: Numbered) -> bool:
        """Add a message, if it fits."""
        if each.size > self._room:
            if self._messages:
                return False
            msg = (
                f"message {each.number} has {each.size:,} bytes as JSON; raise max_chars, or read"
                " it as Markdown, which omits media data"
            )
            raise InvalidInputError(msg)
        self._messages[each.number] = each.message
        self._room -= each.size
        return True

    def text(self) -> str:
        messages = (self._messages[number] for number in sorted(self._messages))
        return Messages.wrapping(messages).to_json().decode()


class _Reading:
    """One page of one session."""

    def __init__(self, storage: Storage, session: Session, wanted: Wanted) -> None:
        self._storage = storage
        self._session = session
        self._wanted = wanted
        self._branch = session.active if wanted.branch is None else wanted.branch
        self._path = stretches(session, self._branch)
        self._keeper = Keeper(session.identity, storage, store_meta=True)

    async def page(self, form: _Markdown | _Json) -> Page:
        """The messages that fit."""
        if self._wanted.after is not None and self._wanted.before is not None:
            msg = "pass either after or before, not both"
            raise InvalidInputError(msg)
        numbers: list[int] = []
        async for each in self._messages():
            if len(numbers) == self._wanted.limit or not form.takes(each):
                break
            numbers.append(each.number)
        numbers.sort()
        unreadable = [
            f"message {each.seq}: {each.reason}" if each.seq else each.reason
            for each in self._keeper.damaged.values()
        ]
        first, last = (numbers[0], numbers[-1]) if numbers else self._around_nothing()
        return Page(
            self._branch, numbers, form.text(), await self._is_any(upto=first - 1),
            await self._is_any(after=last), unreadable,
        )  # fmt: skip

    def _around_nothing(self) -> tuple[int, int]:
        """The message numbers around an empty page."""
        if self._wanted.after is not None:
            return self._wanted.after + 1, self._wanted.after
        before = self._wanted.before or self._session.last_seq + 1
        return before, before - 1

    async def _messages(self) -> AsyncIterator[Numbered]:
        """Forwards from `after`, or otherwise backwards."""
        rows = self._backwards() if self._wanted.after is None else self._forwards()
        async for some in rows:
            try:
                messages = {message.id: message for message in self._keeper.decoded(some)}
            except ConfigError:
                raise ConfigError(ENCRYPTED) from None
            for row in some:
                if row.id in messages:
                    yield Numbered(row.seq, messages[row.id], row.at, len(row.body))

    async def _forwards(self) -> AsyncIterator[list[Row]]:
        after = self._wanted.after or 0
        for branch, upto in self._path:
            while some := await self._rows(branch, after=after, upto=upto):
                yield some
                after = max(some[-1].seq, after + 1)  # damaged numbers must not loop forever

    async def _backwards(self) -> AsyncIterator[list[Row]]:
        for branch, upto in reversed(self._path):
            until = _lowest(upto, None if self._wanted.before is None else self._wanted.before - 1)
            while some := await self._rows(branch, upto=until, newest=True):
                yield some[::-1]
                until = some[0].seq - 1 if until is None else min(some[0].seq, until) - 1

    async def _rows(
        self, branch: int, *, after: int = 0, upto: int | None = None, newest: bool = False
    ) -> list[Row]:
        return await self._storage.rows(
            self._session.identity, branch=branch, after=after, upto=upto, limit=_ROWS_PER_READ,
            newest=newest,
        )  # fmt: skip

    async def _is_any(self, *, after: int = 0, upto: int | None = None) -> bool:
        """Whether the path has a message between these numbers."""
        for branch, end in self._path:
            until = _lowest(end, upto)
            if await self._storage.rows(
                self._session.identity, branch=branch, after=after, upto=until, limit=1
            ):
                return True
        return False


def _lowest(*numbers: int | None) -> int | None:
    given = [number for number in numbers if number is not None]
    return min(given) if given else None
