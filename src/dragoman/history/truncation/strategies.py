"""The strategies that need no model: `FitWindow`, the default, `LastTurns` and `Callback`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from inspect import isawaitable
from typing import Any, NamedTuple

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.history.truncation import notes
from dragoman.history.truncation.cut import Cut, Room, extended, grouped, is_instruction
from dragoman.history.truncation.window import Boundary, Window, tallied, weight_of
from dragoman.model.collection import Messages
from dragoman.model.media import Media
from dragoman.model.messages import Message
from dragoman.model.tools import ToolCall, ToolResult


class LastTurns(msgspec.Struct, frozen=True):
    """Keeps the last `n` turns, even if more would fit."""

    n: int
    marker: bool = True
    """Whether to add a message that says how many were left out."""

    def __post_init__(self) -> None:
        if self.n < 1:
            msg = "LastTurns must keep at least one turn"
            raise InvalidInputError(msg)

    async def __call__(self, messages: Messages, cut: Cut, room: Room, /) -> Cut:
        """The cut before the last turns."""
        window = await Window.opened(messages, cut, room)
        if len(window.groups) <= self.n:
            return cut
        place = max(window.groups[-self.n].start, window.at)
        gone = window.boundary(place).gone
        if not gone:
            return cut
        stated = notes.others(cut.notes, "marker")
        if self.marker:
            stated = (*stated, notes.marker(cut.left_out + gone))
        return window.cut_at(place, stated)


# --- `FitWindow`, the default strategy


_MAX_ATTEMPTS = 16


class FitWindow(msgspec.Struct, frozen=True):
    """Leaves out the oldest turns until the rest fits.

    It leaves out more than necessary, so that the cut does not move with every turn: `slack` is the
    fraction of the limit to free up, if possible. If the last turn alone is too long and `rounds`
    is set, its oldest rounds of tool calls are left out too.
    """

    slack: float = 0.2
    marker: bool = True
    """Whether to add a message that says how many were left out."""
    rounds: bool = False

    def __post_init__(self) -> None:
        check_slack(self.slack)

    async def __call__(self, messages: Messages, cut: Cut, room: Room, /) -> Cut:
        """The cut after which the window fits, or is as short as possible."""
        return await self.because("", messages, cut, room)

    async def because(self, reason: str, messages: Messages, cut: Cut, room: Room) -> Cut:
        """Like a call; `reason` goes into the marker's metadata: why another strategy failed."""
        window = await Window.opened(messages, cut, room)
        if window.tokens <= room.limit:
            return cut
        if room.count is None:
            found = self._choice(window, room.limit, reason)
            return found.cut if found else smallest(window, rounds=self.rounds)
        return await self._counted(window, room, reason)

    async def _counted(self, window: Window, room: Room, reason: str) -> Cut:
        """Like the estimate, but checks each choice with the configured counter."""
        messages = Messages.wrapping(window.messages)
        for _ in range(_MAX_ATTEMPTS):
            found = self._choice(window, room.limit, reason)
            if found is None:
                break
            tokens, _ = await tallied(messages, found.cut, room)
            if tokens <= room.limit:
                return found.cut
            window.ratio *= tokens / max(found.tokens, 1)  # the rest costs more than the average
        return smallest(window, rounds=self.rounds)

    def _choice(self, window: Window, limit: int, reason: str) -> _Choice | None:
        stated = _Notes(window.cut, self.marker, reason)
        most = stated.notes(len(window.messages))
        for boundaries, ceiling, is_stated in self._attempts(window, limit):
            found = window.first_fit(boundaries, ceiling, most if is_stated else ())
            if found:
                made = stated.notes(found.gone) if is_stated else ()
                tokens = window.cost(found.weight, weight_of(made))
                return _Choice(window.cut_at(found.place, made), tokens)
        return None

    def _attempts(self, window: Window, limit: int) -> Iterator[tuple[list[Boundary], int, bool]]:
        """Where to cut, the token limit, and whether to add notes; best first."""
        target = int(limit * (1 - self.slack))
        for boundaries in (window.turns(), window.rounds() if self.rounds else []):
            yield boundaries, target, True
            yield boundaries, limit, True
            yield boundaries, limit, False


class _Choice(NamedTuple):
    cut: Cut
    tokens: int


class _Notes(NamedTuple):
    """Builds the notes; keeps an existing summary."""

    cut: Cut
    has_marker: bool
    reason: str

    def notes(self, gone: int) -> tuple[Message, ...]:
        old = notes.others(self.cut.notes, "marker")
        count = self.cut.left_out + gone
        return (*old, notes.marker(count, self.reason)) if self.has_marker else old


def smallest(window: Window, *, rounds: bool = False) -> Cut:
    """The shortest possible cut, without notes."""
    boundaries = [*window.turns(), *(window.rounds() if rounds else [])]
    if not boundaries or not (boundaries[-1].gone or window.cut.notes):
        return window.cut
    return window.cut_at(boundaries[-1].place)


def check_slack(slack: float) -> None:
    """Raises unless slack is a valid fraction."""
    if not 0 <= slack < 1:
        msg = "slack must be a fraction of the limit: at least 0 and less than 1"
        raise InvalidInputError(msg)


# --- `Callback`


Answer = Iterable[Message] | None
Truncation = Callable[[Messages, int, Any], Answer | Awaitable[Answer]]


class Callback(msgspec.Struct, frozen=True):
    """Calls a function to choose the messages to keep, when the window is exceeded.

    The function gets the window as the model would see it, its number of tokens, and the config of
    the history. It returns the messages to keep, or `None` to fall back to `FitWindow`. A turn is
    kept whole if any of its messages is kept. The last turn, instructions and pinned messages are
    always kept. Messages that the function adds, such as a summary, replace those left out.
    """

    function: Truncation
    marker: bool = True
    """Whether to add a message that says how many were left out."""

    async def __call__(self, messages: Messages, cut: Cut, room: Room, /) -> Cut:
        """The cut that keeps what the function returns."""
        tally = await tallied(messages, cut, room)
        if tally.total <= room.limit or not messages:
            return cut
        shown = cut.apply(messages)
        answer = self.function(shown, tally.total, room.config)
        answered = await answer if isawaitable(answer) else answer
        if answered is None:  # fall back: `truncate` continues from here
            return cut
        kept = _checked(answered, shown)
        return _cut(Window(messages, cut, room, tally), kept, has_marker=self.marker)


def _checked(answer: Any, shown: Messages) -> Messages:
    """Validates what the function returned."""
    kept = Messages.from_any(answer)
    known = {message.id: message for message in shown}
    if any(known.get(message.id, message) != message for message in kept):
        msg = "a truncation callback can't change messages; give a new message a new id"
        raise InvalidInputError(msg)
    return kept


def _cut(window: Window, kept: Messages, *, has_marker: bool) -> Cut:
    own = {message.id for message in window.messages}
    added = tuple(message for message in kept if message.id not in own)
    staying = _staying(window, {message.id for message in kept})
    place = _place(window, staying)
    also = {
        index
        for group, stays in zip(window.groups, staying, strict=True)
        if stays
        for index in range(group.start, min(group.stop, place))
    }
    made = window.cut_at(place, added, also)
    if made.left_out == window.cut.left_out:
        return window.cut if _are_same(added, window.cut.notes) else made
    marker = (notes.marker(made.left_out),) if has_marker else ()
    return made.replace(notes=(*notes.others(added, "marker"), *marker))


def _staying(window: Window, wanted: set[str]) -> list[bool]:
    """Which turns stay: those with a wanted message, and the last."""
    spans = [(group.start, group.stop) for group in window.groups]
    asked = [
        group.stays or any(_is_wanted(each, wanted) for each in window.messages[slice(*span)])
        for group, span in zip(window.groups, spans, strict=True)
    ]
    return extended(window.messages, spans, [*asked[:-1], True])


def _is_wanted(message: Message, wanted: set[str]) -> bool:
    return message.id in wanted and not is_instruction(message)  # instructions always stay


def _place(window: Window, staying: list[bool]) -> int:
    """The start of the last consecutive turns that stay; not before the current cut."""
    turns = [group.start for group in window.groups]
    first = len(turns) - 1
    while first and staying[first - 1]:
        first -= 1
    spoken = (i for i, message in enumerate(window.messages) if not is_instruction(message))
    return max(turns[first], window.at, next(spoken, 0))


def _are_same(some: tuple[Message, ...], others: tuple[Message, ...]) -> bool:
    return len(some) == len(others) and all(map(Message.identical, some, others))


# --- the strategies that replace the oldest turns: `Summarise` and `Symbolise`


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
