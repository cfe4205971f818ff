"""`Symbolise`: replaces the oldest turns with one line per message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.history.truncation import notes
from dragoman.history.truncation.cut import Cut
from dragoman.history.truncation.fit_window import FitWindow, check_slack
from dragoman.history.truncation.strategy import Room
from dragoman.history.truncation.window import Boundary, Window, weight_of
from dragoman.model.collection import Messages
from dragoman.model.media import Media
from dragoman.model.messages import Message
from dragoman.model.tools import ToolCall, ToolResult

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
