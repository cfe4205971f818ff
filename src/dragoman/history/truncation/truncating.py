"""`truncate` and `fit`: shorten a history so that it fits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from dragoman.errors import ContextTooSmall, InvalidInputError
from dragoman.history.truncation.cut import (
    NOTHING_CUT,
    Chained,
    Counter,
    Cut,
    Group,
    Room,
    Strategy,
    grouped,
    is_instruction,
    rounds,
)
from dragoman.history.truncation.strategies import Callback, FitWindow, Summarise, Symbolise
from dragoman.history.truncation.window import shortage, tallied, usual_ratio
from dragoman.model.collection import Messages
from dragoman.model.content import AnyPart
from dragoman.model.ids import new_id
from dragoman.model.messages import Message
from dragoman.model.requests import AnyTool


def check(made: Cut, before: Cut, messages: Sequence[Message]) -> None:
    """Raises unless the cut moves forward and keeps whole turns and everything that must stay."""
    left, at = before.rest_of(messages)
    place = made.place_in(left)
    if place is None or place < at:
        _refuse("it moves the cut back, or to an unknown message")
    kept = frozenset(made.kept)
    is_in = [index >= place or message.id in kept for index, message in enumerate(left)]
    for group in grouped(left):
        _check_group(group, left, is_in, place)


def _check_group(group: Group, left: list[Message], is_in: list[bool], place: int) -> None:
    own = range(group.start, group.stop)
    said = [index for index in own if not is_instruction(left[index])]
    inside = [index for index in said if is_in[index]]
    if any(is_instruction(left[index]) and not is_in[index] for index in own):
        _refuse("it leaves out instructions")
    if len(inside) == len(said):
        return
    if group.stays:
        _refuse("it leaves out a pinned turn")
    if inside and inside != _shortened(group, left, said, place):
        _refuse("it splits a turn")


def _shortened(group: Group, left: list[Message], said: list[int], place: int) -> list[int]:
    """The messages of a turn that may remain: its beginning, and whole rounds of tool calls."""
    starts = rounds(left, group)
    if place not in starts:
        return []
    return [index for index in said if index < starts[0] or index >= place]


def _refuse(why: str) -> NoReturn:
    msg = f"the truncation strategy returned an invalid cut: {why}"
    raise InvalidInputError(msg)


# --- truncating


DEFAULT = FitWindow()
# Exact types only: a subclass may do anything.
_ACT_ONLY_WHEN_EXCEEDED: frozenset[type] = frozenset({FitWindow, Summarise, Symbolise, Callback})


async def truncate(
    messages: Sequence[Message],
    *,
    limit: int,
    strategy: Strategy = DEFAULT,
    cut: Cut = NOTHING_CUT,
    tools: Iterable[AnyTool] = (),
    system: Iterable[AnyPart] = (),
    counter: Counter | None = None,
    config: Any = None,
) -> Cut:
    """Where to cut a history so that the prompt takes at most `limit` tokens.

    `messages` is the whole history, or what `cut` keeps of it. Returns the same cut if nothing has
    to be done. If the strategy's window does not fit, it is cut further, as by `FitWindow`. Raises
    `ContextTooSmall` if not even the shortest window fits.
    """
    room = Room(limit, tuple(tools), tuple(system), counter, config)
    return await truncate_into(room, messages, strategy, cut)


async def truncate_into(
    room: Room, messages: Sequence[Message], strategy: Strategy, cut: Cut
) -> Cut:
    """Like `truncate`, with a `Room`."""
    given = messages if isinstance(messages, Messages) else Messages.wrapping(messages)
    present = cut if not cut.first or cut.place_in(given) is not None else NOTHING_CUT
    made = await _run(strategy, given, present, room)
    is_fitting = await _fits(given, made, room)
    if not is_fitting and not isinstance(strategy, FitWindow):
        plain = FitWindow(marker=bool(getattr(strategy, "marker", True)))
        made = await _run(plain, given, made, room)
        is_fitting = await _fits(given, made, room)
    if not is_fitting and room.count is None and made.ratio > usual_ratio(made.ratio):
        # Reports grew by more than the messages account for, perhaps because of a tool or a
        # document that was added once. That is no reason to reject the shortest window.
        made = made.replace(ratio=usual_ratio(made.ratio))
        is_fitting = await _fits(given, made, room)
    if not is_fitting:
        raise ContextTooSmall(await shortage(given, made, room))
    return made


def fit(
    messages: Any,
    limit: int,
    *,
    strategy: Strategy = DEFAULT,
    tools: Iterable[AnyTool] = (),
    system: Iterable[AnyPart] = (),
    counter: Counter | None = None,
    config: Any = None,
) -> Messages:
    """Shortens a list of messages that is not stored; the synchronous form of `truncate`.

    >>> talk = [Message.user("word " * 1000), Message.assistant("Yes."), Message.user("Why?")]
    >>> [message.text for message in fit(talk, 100)]
    ['(2 earlier messages were left out here.)', 'Why?']
    """
    given = _distinct(Messages.from_any(messages))
    running = truncate(
        given, limit=limit, strategy=strategy, tools=tools, system=system, counter=counter,
        config=config,
    )  # fmt: skip
    try:
        running.send(None)
    except StopIteration as done:
        made: Cut = done.value
        return made.apply(given)
    running.close()
    msg = "the strategy or the counter is async; use `await truncate(…)`"
    raise InvalidInputError(msg)


def acts_when_exceeded(strategy: Strategy) -> bool:
    """Whether a strategy is known to do nothing while the window fits."""
    if isinstance(strategy, Chained):
        return all(map(acts_when_exceeded, strategy.strategies))
    return type(strategy) in _ACT_ONLY_WHEN_EXCEEDED


async def _run(strategy: Strategy, messages: Messages, cut: Cut, room: Room) -> Cut:
    made = await strategy(messages, cut, room)
    if made is not cut:
        check(made, cut, messages)
    return made


async def _fits(messages: Messages, cut: Cut, room: Room) -> bool:
    return (await tallied(messages, cut, room)).total <= room.limit


def _distinct(messages: Messages) -> Messages:
    """Gives duplicates new ids: a plain list may contain a message twice."""
    seen: set[str] = set()
    found: list[Message] = []
    for message in messages:
        found.append(message.with_id(new_id()) if message.id in seen else message)
        seen.add(message.id)
    return messages if len(seen) == len(found) else Messages.wrapping(found)
