"""The strategies that replace the oldest turns: `Summarise` and `Symbolise`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from inspect import isawaitable
from typing import Any

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.history.truncation import notes
from dragoman.history.truncation.cut import Cut, Room
from dragoman.history.truncation.groups import grouped
from dragoman.history.truncation.strategies import FitWindow, check_slack
from dragoman.history.truncation.window import Boundary, Window, weight_of
from dragoman.model.collection import Messages
from dragoman.model.media import Media
from dragoman.model.messages import Message
from dragoman.model.tools import ToolCall, ToolResult

Summariser = Callable[[Messages, str], str | Awaitable[str]]
"""Takes messages and the summary of those before them; returns a summary of both."""

_log = logging.getLogger(__name__)


class Summarise(msgspec.Struct, frozen=True):
    """Replaces the oldest turns with a summary, when the window is exceeded.

    `model` is any callable, sync or async. It gets the messages in batches, each with the summary
    so far, so a long history need not fit into the context window of the summarising model. If it
    fails, or the summary is empty or too long, the turns are left out without a summary, as by
    `FitWindow`; the log and the marker's metadata give the reason.
    """

    model: Summariser
    batch: int = 50
    """Maximum number of messages to summarise at a time; turns are never split."""
    keep_turns: int | None = None
    """Keep this many turns and summarise the rest; `None` summarises as few as `slack` allows."""
    max_tokens: int = 1_000
    """Maximum estimated tokens of the summary."""
    slack: float = 0.2
    marker: bool = True
    """Whether to add a message that says how many were left out, if there is no summary."""

    def __post_init__(self) -> None:
        check_slack(self.slack)
        least = 1 if self.keep_turns is None else self.keep_turns
        if min(self.batch, self.max_tokens, least) < 1:
            msg = "batch, max_tokens and keep_turns of Summarise must be at least 1"
            raise InvalidInputError(msg)

    async def __call__(self, messages: Messages, cut: Cut, room: Room, /) -> Cut:
        """The cut with a summary, or without one if that fails."""
        window = await Window.opened(messages, cut, room)
        if window.tokens <= room.limit:
            return cut
        found = self._boundary(window, room.limit)
        if found is None:
            return await self._plain("there is no room for a summary", messages, cut, room)
        try:
            note = await self._note(window, found)
        except Exception as error:  # noqa: BLE001 - whatever the model raises, the history goes on
            reason = f"the summary failed: {type(error).__name__}"
        else:
            reason = self._objection(note)
            if not reason:
                return window.cut_at(found.place, (note,))
        return await self._plain(reason, messages, cut, room)

    def _boundary(self, window: Window, limit: int) -> Boundary | None:
        """As few turns as make room for the rest and the summary, or all but `keep_turns`."""
        turns = window.turns()
        found = window.first_fit(turns, int(limit * (1 - self.slack)), self.max_tokens)
        found = found or window.first_fit(turns, limit, self.max_tokens)
        if found is None or self.keep_turns is None or len(window.groups) <= self.keep_turns:
            return found
        last = window.boundary(max(window.groups[-self.keep_turns].start, window.at))
        return max(found, last)

    async def _note(self, window: Window, found: Boundary) -> Message:
        old = notes.others(window.cut.notes, "marker")
        text = "\n\n".join(filter(None, map(notes.body_of, old)))
        for batch in self._batches(window.left_out(found.place)):
            answer: Any = self.model(batch, text)
            said = await answer if isawaitable(answer) else answer
            if not isinstance(said, str) or not said.strip():
                return notes.summary("", 0)
            text = said
        return notes.summary(text, window.cut.left_out + found.gone)

    def _batches(self, messages: Sequence[Message]) -> Iterator[Messages]:
        """The messages in batches of whole turns."""
        batch: list[Message] = []
        for group in grouped(messages):
            own = messages[group.start : group.stop]
            if batch and len(batch) + len(own) > self.batch:
                yield Messages.wrapping(batch)
                batch = []
            batch.extend(own)
        if batch:
            yield Messages.wrapping(batch)

    def _objection(self, note: Message) -> str:
        if not notes.body_of(note):
            return "the summary is empty"
        return "the summary is too long" if weight_of((note,)) > self.max_tokens else ""

    async def _plain(self, reason: str, messages: Messages, cut: Cut, room: Room) -> Cut:
        _log.warning("truncated without a summary: %s", reason)
        plain = FitWindow(slack=self.slack, marker=self.marker)
        return await plain.because(reason, messages, cut, room)


# --- `Symbolise`


_MAX_NAMES = 5
_NAME_LENGTH = 64


class Symbolise(msgspec.Struct, frozen=True):
    """Replaces the oldest turns with one line per message, when the window is exceeded.

    A line shows the role, the tools that were called or returned results, and the beginning of the
    text. If there are too many lines, the oldest are dropped.
    """

    preview: int = 80
    """How many characters of a message's text to show."""
    max_tokens: int = 1_000
    """Maximum estimated tokens of all lines."""
    slack: float = 0.2
    marker: bool = True
    """Whether to add a message that says how many were left out, if the lines don't fit."""

    def __post_init__(self) -> None:
        check_slack(self.slack)
        if self.preview < 0 or self.max_tokens < 1:
            msg = "preview of Symbolise must be at least 0, and max_tokens at least 1"
            raise InvalidInputError(msg)

    async def __call__(self, messages: Messages, cut: Cut, room: Room, /) -> Cut:
        """The cut with one line per message left out."""
        window = await Window.opened(messages, cut, room)
        if window.tokens <= room.limit:
            return cut
        found = self._boundary(window, room.limit)
        note = self._note(window, found) if found else None
        if found is None or note is None:
            plain = FitWindow(slack=self.slack, marker=self.marker)
            return await plain.because("there is no room for symbols", messages, cut, room)
        carried = notes.others(cut.notes, "marker", "symbols")
        return window.cut_at(found.place, (*carried, note))

    def _boundary(self, window: Window, limit: int) -> Boundary | None:
        carried = notes.others(window.cut.notes, "marker", "symbols")
        extra = self.max_tokens + weight_of(carried)
        turns = window.turns()
        found = window.first_fit(turns, int(limit * (1 - self.slack)), extra)
        return found or window.first_fit(turns, limit, extra)

    def _note(self, window: Window, found: Boundary) -> Message | None:
        """All lines, or the latest that fit."""
        latest = window.left_out(found.place)[-self.max_tokens :]  # a line takes at least one token
        lines = [*_lines_of(window.cut.notes), *self._lines(latest)]
        while lines:
            note = notes.symbols(lines, window.cut.left_out + found.gone)
            weight = weight_of((note,))
            if weight <= self.max_tokens:
                return note
            # Shorten to nearly the final number in one step, as there may be very many.
            lines = lines[-(len(lines) * self.max_tokens * 9 // (weight * 10)) or len(lines) :]
        return None

    def _lines(self, messages: list[Message]) -> Iterator[str]:
        names = {call.id: call.name for message in messages for call in message.tool_calls}
        for message in messages:
            about = [*_tools(message, names), *_media(message)]
            shown = f" ({', '.join(about)})" if about else ""
            words = " ".join(message.preview(self.preview).split())
            yield f"{message.kind}{shown}: {words}" if words else f"{message.kind}{shown}"


def _lines_of(old: Iterable[Message]) -> list[str]:
    """The lines of earlier notes."""
    bodies = [notes.body_of(note) for note in old if notes.kind_of(note) == "symbols"]
    return [line for body in bodies for line in body.split("\n") if line]


def _tools(message: Message, names: dict[str, str]) -> list[str]:
    """The names of the first few tools that were called or returned results."""
    named = [
        part.name if isinstance(part, ToolCall) else part.tool_name or names.get(part.call_id, "?")
        for part in message.parts
        if isinstance(part, (ToolCall, ToolResult))
    ]
    # Names off a wire may contain anything.
    shown = [" ".join(name.split())[:_NAME_LENGTH] for name in named[:_MAX_NAMES]]
    return [*shown, "…"] if len(named) > _MAX_NAMES else shown


def _media(message: Message) -> list[str]:
    kinds = [type(part).__name__.lower() for part in message.parts if isinstance(part, Media)]
    return list(dict.fromkeys(kinds))
