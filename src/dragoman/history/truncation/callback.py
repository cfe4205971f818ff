"""`Callback`: truncation by a custom function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from inspect import isawaitable
from typing import Any

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.history.truncation import notes
from dragoman.history.truncation.counting import tallied
from dragoman.history.truncation.cut import Cut
from dragoman.history.truncation.groups import extended, is_instruction
from dragoman.history.truncation.strategy import Room
from dragoman.history.truncation.window import Window
from dragoman.model.collection import Messages
from dragoman.model.messages import Message

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
