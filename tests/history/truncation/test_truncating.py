"""Truncation as a whole: counting, validation, and what is impossible."""

from __future__ import annotations

import asyncio

import pytest

from dragoman.errors import ContextTooSmall, InvalidInputError
from dragoman.history.tokens import count, estimate
from dragoman.history.truncation import (
    NOTHING_CUT,
    Callback,
    Cut,
    FitWindow,
    LastTurns,
    Room,
    fit,
    truncate,
)
from dragoman.history.truncation.window import tallied
from dragoman.model.collection import Messages
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.tools import ToolDefinition
from dragoman.model.usage import Usage
from tests.history.truncation.histories import run
from tests.history.truncation.talks import room_for, talk, words

_TALK = talk("s u1 a1 u2! a2 u3 a3 u4 a4")


# --- counting


def _reporting(messages: Messages, place: int, tokens: int) -> Messages:
    usage = Usage(input=tokens)
    told = [m.replace(usage=usage) if i == place else m for i, m in enumerate(messages)]
    return Messages.of(told)


def test_counts_reported_usage() -> None:
    """While nothing is cut, reported tokens count, with estimates for the rest."""
    told = _reporting(_TALK, 6, 500)
    assert run(tallied(told, NOTHING_CUT, Room(0))).total == count(told).total


def test_report_after_the_cut_covers_the_window() -> None:
    """Usage reported after the cut belongs to this window."""
    cut = Cut("u4:7", kept=("s:0", "u2!:3", "a2:4"), left_out=4, since="u4:7")
    assert run(tallied(_reporting(_TALK, 8, 300), cut, Room(0))).total >= 300


def test_report_before_the_cut_does_not() -> None:
    """It covers omitted messages: only its ratio to the estimate is kept."""
    cut = Cut("u4:7", kept=("s:0", "u2!:3", "a2:4"), left_out=4, since="a4:8", ratio=1.5)
    told = _reporting(_TALK, 8, 5_000)
    estimated = sum(map(estimate, cut.apply(told)))
    found = run(tallied(told, cut, Room(0)))
    assert found.total == pytest.approx(1.5 * estimated, abs=4)
    assert found.ratio == 1.5


def test_usage_in_the_metadata_is_a_report() -> None:
    """Seed 001 stores usage there; it counts like any other."""
    cut = Cut("u4:7", left_out=7, since="a4:8")
    about = {"usage": {"total_tokens": 5_000}}
    told = _TALK.replace_last(_TALK[-1].replace(metadata=about))
    assert run(tallied(told, cut, Room(0))).total < 500


def test_tools_and_system_take_room() -> None:
    """They count even if a custom counter doesn't see them."""
    tool = ToolDefinition.create("look", "Looks. " * 40, {"type": "object", "properties": {}})
    bare, full = Room(0), Room(0, tools=(tool,), system=(Text("Be brief. " * 30),))
    more = (
        run(tallied(_TALK, NOTHING_CUT, full)).total - run(tallied(_TALK, NOTHING_CUT, bare)).total
    )
    assert more > 100
    counted = Room(0, full.tools, full.system, count=len)
    assert run(tallied(_TALK, NOTHING_CUT, counted)).total == pytest.approx(
        more + len(_TALK), abs=1
    )


def test_async_counter() -> None:
    """A counter may be a coroutine function, such as a provider's counting endpoint."""

    async def counter(messages: Messages) -> int:
        await asyncio.sleep(0)
        return len(messages)

    made = asyncio.run(truncate(_TALK, limit=8, counter=counter))
    assert len(made.apply(_TALK)) <= 8


def test_the_repr_of_room_has_no_settings() -> None:
    """The settings of a history may hold keys."""
    assert repr(Room(10, config="secret")) == "Room(10 tokens, 0 tools)"


# --- what can't be done


def test_too_small() -> None:
    """The error has the size of the smallest window, its contents, and what would help."""
    history = talk("s u1 a1 u2! a2 u3 a+x t+x a+y t+y")
    with pytest.raises(ContextTooSmall) as caught:
        run(truncate(history, limit=100))
    smallest = room_for("s u2! a2 u3 a+x t+x a+y t+y", history)
    text = str(caught.value)
    assert f"takes {run(_smallest(history))} tokens" in text
    assert abs(run(_smallest(history)) - smallest) < 10
    for said in ("only 100", "of instructions", "of pinned turns", "of the last turn", "unpin"):
        assert said in text
    assert "rounds=True" in text
    assert "forth" not in text  # no content


async def _smallest(history: Messages) -> int:
    kept = ("s:0", "u2!:3", "a2:4")
    return (await tallied(history, Cut("u3:5", kept=kept, since="t+y:9"), Room(0))).total


def test_too_small_for_anything() -> None:
    """An empty history does not fit if not even the tools do."""
    with pytest.raises(ContextTooSmall, match="tools and system prompt"):
        fit([], 3, system=[Text("Be brief. " * 30)])
    assert list(fit([], 0)) == []


def test_absurd_reports_do_not_break_a_history() -> None:
    """A history with far too high reported usage can be cut."""
    told = _reporting(_TALK, 2, 10**7)
    made = run(truncate(told, limit=room_for("s u1 a1 u2! a2 u3 a3 u4", told)))
    assert made.left_out


# --- what is checked


def _giving(cut: Cut) -> object:
    async def strategy(_messages: Messages, _cut: Cut, _room: Room) -> Cut:
        return cut

    return strategy


@pytest.mark.parametrize(
    ("cut", "why"),
    [
        (Cut("u3:5", kept=("s:0",)), "pinned"),
        (Cut("u3:5", kept=("u2!:3", "a2:4")), "instructions"),
        (Cut("a3:6", kept=("s:0", "u2!:3", "a2:4")), "splits"),
        (Cut("u3:5", kept=("s:0", "u1:1", "u2!:3", "a2:4")), "splits"),
        (Cut("nowhere"), "back"),
    ],
)
def test_a_strategy_with_an_invalid_cut(cut: Cut, why: str) -> None:
    """No strategy can break a history: an invalid cut is an error."""
    with pytest.raises(InvalidInputError, match=why):
        run(truncate(_TALK, limit=1_000, strategy=_giving(cut)))  # type: ignore[arg-type]


def test_strategy_that_goes_back() -> None:
    """Omitted messages stay omitted."""
    now = Cut("u4:7", kept=("s:0", "u2!:3", "a2:4"), left_out=4, since="a4:8")
    back = Cut("u3:5", kept=("s:0", "u2!:3", "a2:4"), left_out=2, since="a4:8")
    with pytest.raises(InvalidInputError, match="back"):
        run(truncate(_TALK, limit=1_000, strategy=_giving(back), cut=now))  # type: ignore[arg-type]


def test_cut_at_a_message_that_is_gone() -> None:
    """If the message at the cut was removed, the history is cut again."""
    lost = Cut("removed", left_out=9, since="removed")
    assert run(truncate(_TALK, limit=10**6, cut=lost)) is NOTHING_CUT


# --- plain lists


def test_fit() -> None:
    """A list of anything that `Messages.from_any` reads is returned shorter."""
    window = fit(["word " * 500, {"role": "assistant", "content": "Yes."}, "Why?"], 60)
    assert [message.text for message in window][1:] == ["Why?"]


def test_fit_leaves_what_fits() -> None:
    """A list that fits is returned unchanged."""
    assert fit(_TALK, 10**6) == _TALK


def test_fit_with_a_repeated_message() -> None:
    """A plain list may contain a message twice."""
    hello, answer = Message.user("hello " * 50), Message.assistant("yes " * 50)
    window = fit([hello, answer] * 10, 300, strategy=FitWindow(slack=0, marker=False))
    assert 2 <= len(window) < 20
    assert window[0] == hello


def test_fit_takes_a_strategy() -> None:
    """Any strategy that isn't async."""
    assert words(fit(_TALK, 10**6, strategy=LastTurns(1))) == "s u2! a2 * u4 a4"

    async def keep(messages: Messages, _tokens: int, _config: object) -> Messages:
        await asyncio.sleep(0)
        return messages

    with pytest.raises(InvalidInputError, match="truncate"):
        fit(_TALK, 250, strategy=Callback(keep))
