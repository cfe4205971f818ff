"""Invariants of every window, for any history, limit and strategy."""

from __future__ import annotations

from itertools import count as numbers

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import ContextTooSmall
from dragoman.history.tokens import estimate
from dragoman.history.truncation import NOTHING_CUT, Cut, FitWindow, Strategy, truncate
from dragoman.history.truncation.cut import Room, grouped, pairs
from dragoman.history.truncation.window import tallied
from dragoman.model.collection import Messages
from dragoman.model.messages import Message
from dragoman.model.roles import Role
from tests.history.truncation.histories import (
    STRATEGIES,
    Case,
    cases,
    plain_turns,
    run,
)

every_strategy = pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
any_strategy = st.sampled_from([*STRATEGIES.values()])


def _cut(messages: Messages, limit: int, strategy: Strategy, cut: Cut = NOTHING_CUT) -> Cut | None:
    """The cut, or None if the context is too small."""
    try:
        return run(truncate(messages, limit=limit, strategy=strategy, cut=cut))
    except ContextTooSmall:
        return None


def _tokens(messages: Messages, cut: Cut) -> int:
    return run(tallied(messages, cut, Room(0))).total


def _own(window: Messages, messages: Messages) -> list[int]:
    """The positions of the window's messages, without notes."""
    places = {message.id: place for place, message in enumerate(messages)}
    return [places[message.id] for message in window if message.id in places]


@every_strategy
@given(case=cases())
def test_fits(strategy: Strategy, case: Case) -> None:
    """The window fits, or an error says that it can't."""
    messages, limit = case
    made = _cut(messages, limit, strategy)
    if made is not None:
        assert _tokens(messages, made) <= limit


@given(case=cases())
def test_fails_only_if_it_must(case: Case) -> None:
    """If the instructions, the pinned turns and the last one are too much."""
    messages, limit = case
    free = Messages.of(m.replace(usage=None) for m in messages)
    groups = grouped(free)
    must = sum(
        estimate(message)
        for group in groups
        for message in free[group.start : group.stop]
        if group.stays or group is groups[-1] or message.role.is_system
    )
    if must <= limit:
        assert _cut(free, limit, FitWindow()) is not None


@given(strategy=any_strategy, case=cases())
def test_omits_complete_turns(strategy: Strategy, case: Case) -> None:
    """Calls stay with their results, instructions and pinned turns stay, the order stays."""
    messages, limit = case
    made = _cut(messages, limit, strategy)
    if made is None:
        return
    own = _own(made.apply(messages), messages)
    assert own == sorted(own)
    inside = set(own)
    assert all((call in inside) == (result in inside) for call, result in pairs(messages))
    for place, message in enumerate(messages):
        assert place in inside or not message.role.is_system
    for group in grouped(messages):
        assert not group.stays or inside.issuperset(range(group.start, group.stop))


@given(strategy=any_strategy, case=cases())
def test_starts_with_the_user(strategy: Strategy, case: Case) -> None:
    """Unless the history itself starts with the model."""
    messages, limit = case
    made = _cut(messages, limit, strategy)
    spoken = [m for m in messages if not m.role.is_system]
    if made is None or not made.left_out or spoken[0].role is not Role.USER:
        return
    window = [m for m in made.apply(messages) if not m.role.is_system]
    assert window[0].role is Role.USER


@every_strategy
@given(case=cases())
def test_truncating_again_changes_nothing(strategy: Strategy, case: Case) -> None:
    """It gives the same cut, from the whole history or from the window."""
    messages, limit = case
    made = _cut(messages, limit, strategy)
    if made is None:
        return
    assert _cut(messages, limit, strategy, made) is made
    left = Messages.wrapping(made.rest_of(messages).messages)
    assert _cut(left, limit, strategy, made) is made
    assert list(made.apply(left)) == list(made.apply(messages))
    stored = Cut.from_json(made.to_json())
    assert stored.identical(made)


@every_strategy
@given(case=cases(), more=plain_turns())
def test_moves_forward(strategy: Strategy, case: Case, more: list[Message]) -> None:
    """As the history grows, omitted messages stay omitted."""
    messages, limit = case
    made = _cut(messages, limit, strategy)
    if made is None:
        return
    longer = messages.extend(more)
    later = _cut(longer, limit, strategy, made)
    if later is None:
        return
    before, after = _own(made.apply(longer), longer), _own(later.apply(longer), longer)
    assert set(after) <= set(before)
    assert later.left_out == len(longer) - len(after)
    left = Messages.wrapping(made.rest_of(longer).messages)
    again = _cut(left, limit, strategy, made)
    assert again == later


@given(case=cases())
def test_trusts_a_counter(case: Case) -> None:
    """With a custom counter the window fits by that counter, however odd."""
    messages, limit = case

    def odd(window: object) -> int:
        assert isinstance(window, Messages)
        return sum(
            len(message.text) * (3 if message.role is Role.USER else 1) for message in window
        )

    try:
        made = run(truncate(messages, limit=limit, counter=odd))
    except ContextTooSmall:
        return
    assert odd(made.apply(messages)) <= limit


def test_takes_linear_time() -> None:
    """Ten times the messages take about ten times the steps."""
    few, many = (_looks(n) for n in (500, 5_000))
    assert many < 15 * few


def _looks(turns: int) -> int:
    """How often a history's parts are read while it is cut."""
    tally = numbers()

    class Watched(Message, frozen=True):
        def __getattribute__(self, name: str) -> object:
            if name == "parts":
                next(tally)
            return super().__getattribute__(name)

    talk = [
        message
        for _ in range(turns)
        for message in (Watched(Role.USER, Message.user("hi").parts), Message.assistant("ho"))
    ]
    run(truncate(talk, limit=200))
    return next(tally)
