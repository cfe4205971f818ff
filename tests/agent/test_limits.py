"""Limits of a run: what counts, when it is exceeded, and what the error says."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from itertools import cycle, islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.agent.limits import RunLimits, Tally
from dragoman.errors import ConfigError, DragomanError, InvalidInputError, LimitExceeded
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.usage import Usage

SECRET = "zqzq0123"
Pair = tuple[ToolCall, ToolResult]


def pair(name: str = "f", arguments: Any = None, result: str = "ok", call: str = "c") -> Pair:
    """A call and its result."""
    return ToolCall.create(call, name, arguments or {}), ToolResult(call, result)


def rounds_until_stopped(tally: Tally, rounds: list[list[Pair]]) -> int | None:
    """The number of rounds before the run was stopped; None if it wasn't."""
    for number, each in enumerate(rounds, 1):
        try:
            tally.round(each)
        except LimitExceeded:
            return number
    return None


# --- steps, calls, tokens, cost


def test_steps() -> None:
    """The model is called as often as allowed, and no more."""
    tally = Tally(RunLimits(steps=2))
    tally.step()
    tally.step()
    with pytest.raises(LimitExceeded, match=r"2 requests.*RunLimits\.steps"):
        tally.step()
    assert tally.steps == 2


def test_calls() -> None:
    """A round that would exceed the limit is rejected before any of it is run."""
    tally = Tally(RunLimits(calls=3))
    tally.calls(2)
    with pytest.raises(LimitExceeded, match=r"RunLimits\.calls"):
        tally.calls(2)
    assert tally.ran == 2
    tally.calls(1)
    with pytest.raises(LimitExceeded):
        Tally(RunLimits(calls=0)).calls(1)


def test_tokens() -> None:
    """All tokens count; above the limit is an error, at the limit no further request is made."""
    tally = Tally(RunLimits(tokens=100))
    tally.step()
    tally.used(Usage(input=40, output=20, cache_read=20, cache_write=10, thinking=10), None)
    assert tally.tokens == 100
    with pytest.raises(LimitExceeded, match=r"RunLimits\.tokens"):
        tally.step()
    assert tally.steps == 1
    tally.check()
    tally.used(Usage(input=1), None)
    with pytest.raises(LimitExceeded, match=r"101 tokens of 100"):
        tally.check()


def test_tokens_that_are_billed_besides_the_total_count() -> None:
    """Anthropic's compaction and its calls of other models are in no total, and are paid for."""
    details = {"compaction_input": 50, "compaction_output": 5, "other_models": 40, "input_text": 7}
    tally = Tally(RunLimits(tokens=100))
    tally.used(Usage(input=7, output=3, reported_total=10, details=details), None)
    assert tally.tokens == 105
    with pytest.raises(LimitExceeded, match=r"105 tokens of 100"):
        tally.check()


def test_cost() -> None:
    """Dollars are summed exactly; otherwise as for tokens."""
    tally = Tally(RunLimits(cost="0.30"))
    for _ in range(3):
        tally.step()
        tally.used(None, Decimal("0.1"))
    assert tally.cost == Decimal("0.3")
    with pytest.raises(LimitExceeded, match=r"RunLimits\.cost"):
        tally.step()
    tally.check()
    tally.used(None, Decimal("0.1"))
    with pytest.raises(LimitExceeded, match=r"0.4 US dollars of 0.30"):
        tally.check()


@pytest.mark.parametrize(
    ("limits", "usage", "cost", "says"),
    [
        (RunLimits(cost=1), Usage(input=1), None, r"RunLimits\.cost can't be enforced.*prices="),
        (RunLimits(tokens=5), None, Decimal(1), r"RunLimits\.tokens can't be enforced.*steps"),
    ],
)
def test_a_limit_without_the_needed_figures_raises(
    limits: RunLimits, usage: Usage | None, cost: Decimal | None, says: str
) -> None:
    """A limit that can't be enforced is an error that explains what to do, and never ignored."""
    tally = Tally(limits)
    tally.used(usage, cost)
    with pytest.raises(ConfigError, match=says):
        tally.check()


def test_without_such_limits_unknown_figures_are_fine() -> None:
    """Known figures are still summed."""
    tally = Tally()
    tally.used(None, None)
    tally.used(Usage(input=3), Decimal(2))
    assert (tally.tokens, tally.cost) == (3, Decimal(2))


def test_none_is_no_limit() -> None:
    """With everything None a run goes on for ever."""
    tally = Tally(RunLimits(steps=None, repeats=None))
    for _ in range(500):
        tally.step()
        tally.calls(100)
        tally.used(Usage(input=10**9), Decimal(10**6))
        tally.check()
        tally.seen(*pair())


# --- loops


def test_the_same_call_with_the_same_result() -> None:
    """Arguments are compared by value, without ids and spelling; the fifth call is an error."""
    tally = Tally(RunLimits(repeats=5))
    spelled = ['{"a":1,"b":2}', '{ "b": 2, "a": 1 }']
    for number in range(4):
        call = ToolCall(f"call_{number}", "f", raw=spelled[number % 2])
        tally.seen(call, ToolResult(call.id, "ok"))
    with pytest.raises(LimitExceeded, match=r"5 times in a row"):
        tally.seen(ToolCall("x", "f", raw=spelled[0]), ToolResult("x", "ok"))


@pytest.mark.parametrize(
    "other",
    [pair("g"), pair(arguments={"a": 2}), pair(result="other"),
     (pair()[0], ToolResult.error("c", "ok"))],
)  # fmt: skip
def test_anything_different_resets_the_count(other: Pair) -> None:
    """Another call, other arguments, another result, or an error with the same text."""
    tally = Tally(RunLimits(repeats=3))
    once = [[pair()], [pair()], [other]]
    assert rounds_until_stopped(tally, [*once, [pair()], [pair()]]) is None
    assert rounds_until_stopped(tally, [[pair()]]) == 1


def test_a_round_is_one_unit() -> None:
    """Parallel calls don't repeat each other, but a round can repeat the previous one."""
    same = [pair(call=str(number)) for number in range(9)]
    assert rounds_until_stopped(Tally(RunLimits(repeats=3)), [same] * 5) == 3
    assert rounds_until_stopped(Tally(RunLimits(repeats=3)), [same, same[:8], same]) is None


@given(
    st.integers(2, 6),
    st.integers(1, 3),
    st.lists(st.integers(100, 200), max_size=6, unique=True),
)
def test_loops_of_up_to_three_rounds(repeats: int, length: int, before: list[int]) -> None:
    """Whatever came before, a loop is stopped after that many repetitions."""
    start = [[pair(result=str(number))] for number in before]
    circle = [[pair(result=str(number))] for number in range(length)]
    rounds = [*start, *islice(cycle(circle), 100)]
    stopped = rounds_until_stopped(Tally(RunLimits(repeats=repeats)), rounds)
    assert stopped == len(start) + length * repeats


@given(st.lists(st.integers(0, 3), max_size=60), st.integers(2, 4))
def test_only_loops_are_stopped(results: list[int], repeats: int) -> None:
    """A run is stopped exactly if its last rounds are a loop that was repeated often enough."""
    expected = None
    for end in range(1, len(results) + 1):
        for length in (1, 2, 3):
            last = results[max(end - length * repeats, 0) : end]
            if len(last) == length * repeats and last == last[:length] * repeats:
                expected = expected or end
    rounds = [[pair(result=str(number))] for number in results]
    assert rounds_until_stopped(Tally(RunLimits(repeats=repeats)), rounds) == expected


# --- texts


@given(st.data())
def test_errors_quote_nothing(data: st.DataObject) -> None:
    """Whatever is exceeded, no argument, result or name is in the text."""
    tally = Tally(RunLimits(steps=1, calls=1, tokens=1, cost=1, repeats=2))
    told: list[DragomanError] = []
    happenings: list[Callable[[], None]] = [
        tally.step,
        lambda: tally.calls(2),
        lambda: tally.used(Usage(input=5), Decimal(5)),
        lambda: tally.used(None, None),
        tally.check,
        lambda: tally.seen(*pair(SECRET, {"x": SECRET}, SECRET)),
    ]
    for happening in data.draw(st.permutations(happenings * 2)):
        try:
            happening()
        except DragomanError as error:
            told.append(error)
    assert told
    for each in told:
        assert SECRET not in str(each)
        assert "RunLimits." in str(each)
        assert (each.__cause__, each.__context__) == (None, None)


# --- the limits themselves


_COUNTS: list[Any] = [-1, 1.5, "5", True, []]
_SECONDS: list[Any] = [0, -1, "5", float("nan"), float("inf")]
_COSTS: list[Any] = [0, -1, "much", float("nan"), True, [], "1e400"]


@pytest.mark.parametrize(
    "fields",
    [
        *({name: bad} for name in ("steps", "calls", "tokens", "repeats") for bad in _COUNTS),
        *({name: 0} for name in ("steps", "tokens", "repeats")),
        {"repeats": 1},
        *({"seconds": bad} for bad in _SECONDS),
        *({"cost": bad} for bad in _COSTS),
    ],
)
def test_invalid_limits(fields: dict[str, Any]) -> None:
    """They are rejected with a text that names the field, and does not quote the value."""
    (name,) = fields
    with pytest.raises(InvalidInputError, match=rf"RunLimits\.{name}"):
        RunLimits(**fields)


def test_limits_are_values() -> None:
    """They are equal if their amounts are, however the money was written."""
    assert RunLimits(cost="0.5") == RunLimits(cost=0.5) == RunLimits(cost=Decimal("0.50"))
    assert RunLimits().steps == 50
    assert RunLimits(seconds=2).seconds == 2
