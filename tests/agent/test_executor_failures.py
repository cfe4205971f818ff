"""Every failure of a tool gives a result that tells the model what to do."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

import pydantic
import pytest

from dragoman.agent import failures
from dragoman.errors import ToolError, ToolRetry, ToolTimeout
from dragoman.model.tools import ToolCall, make_call
from tests.agent.toolkit import (
    RAISERS,
    call_of,
    echo,
    forever,
    raising,
    result_of_one,
    results_of,
    shout,
    tool_of,
    tools_of,
)


class _SilentError(Exception):
    def __str__(self) -> str:
        raise ValueError


@RAISERS
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("no such city"), "`raises` failed: ValueError: no such city"),
        (KeyError("k"), "`raises` failed: KeyError: 'k'"),
        (ValueError(), "`raises` failed: ValueError"),
        (ToolRetry("Use a city's name."), "`raises` asks to be called again: Use a city's name."),
        (ToolRetry(), "`raises` asks to be called again."),
        (ToolTimeout("The server is slow."), "`raises` failed: The server is slow."),
        (ToolError(), "`raises` failed: ToolError"),
        (TimeoutError("its own"), "`raises` failed: TimeoutError: its own"),
        (StopIteration("x"), "`raises` failed: StopIteration: x"),
        (StopAsyncIteration("x"), "`raises` failed: StopAsyncIteration: x"),
        (GeneratorExit("x"), "`raises` failed: GeneratorExit: x"),
        (asyncio.CancelledError("x"), "`raises` failed: CancelledError: x"),
        (_SilentError(), "`raises` failed: _SilentError"),
        (ValueError("half \udcff"), "`raises` failed: ValueError: half \ufffd"),
        (
            ExceptionGroup("two", [ValueError("a"), ExceptionGroup("in", [KeyError("b")])]),
            "`raises` failed: ExceptionGroup: two (2 sub-exceptions): ValueError: a; KeyError: 'b'",
        ),
    ],
)
def test_exceptions_are_reported_to_the_model(
    raiser: Callable[[BaseException], Any], error: BaseException, told: str
) -> None:
    """By type and text; by the advice alone if the tool gives some. Beside others as well."""
    assert (result_of_one(raiser(error)).text, result_of_one(raiser(error)).is_error) == (
        told,
        True,
    )
    calls = [call_of("raises", "a"), call_of("echo", "b", word="fine")]
    first, second = results_of(calls, tools_of(raiser(error), echo))
    assert (first.text, first.is_error, first.tool_name) == (told, True, "raises")
    assert (second.text, second.is_error) == ("fine", False)


def test_long_errors_are_cut() -> None:
    """A long exception text is truncated, and marked as such for the model."""
    text = result_of_one(raising(ValueError("x" * 100_000))).text
    assert len(text) < failures.MAX_CHARS + 100
    assert "cut: the first 8,000 of 100,0" in text


def test_unknown_tools_are_answered_with_the_known_ones() -> None:
    """The result for the model lists the known tools."""
    (result,) = results_of([call_of("weather")], tools_of(echo, shout))
    assert result.is_error
    assert result.text == "There is no tool named `weather`. The tools are: `echo`, `shout`."
    (result,) = results_of([call_of("weather")], {})
    assert "no tools" in result.text


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        ('{"word": 3}', "$.word: expected a string, got integer"),
        ("{}", "$.word: expected a string, got nothing"),
        ('{"word": ', "not a JSON object (the JSON is malformed at character"),
        ('["word"]', "not a JSON object"),
        ('{"word": "x", "volume": 3}', "`echo` was not run"),
        ("{" * 100_000, "not a JSON object"),
    ],
)
def test_invalid_arguments_are_not_run(raw: str, told: str) -> None:
    """The result for the model lists what to correct."""
    (result,) = results_of([make_call("c", "echo", raw=raw)], tools_of(echo))
    assert told in result.text
    assert result.is_error


class Trip(pydantic.BaseModel):
    """A type that is choosy."""

    days: int

    @pydantic.field_validator("days")
    @classmethod
    def _few(cls, days: int) -> int:
        if days > 3:
            msg = "too long"
            raise ValueError(msg)
        return days


def test_validators_of_types_are_applied() -> None:
    """A pydantic model's own validators are part of the check."""

    def book(trip: Annotated[Trip, "The trip."]) -> str:
        return f"{trip.days} days"

    good, bad = results_of(
        [call_of("book", trip={"days": 3}), call_of("book", trip={"days": 9})], tools_of(book)
    )
    assert good.text == "3 days"
    assert bad.is_error
    assert "`book` was not run" in bad.text


def test_valid_and_invalid_calls_are_both_reported() -> None:
    """In one batch, some calls are run and others rejected; each has its result (rule 13)."""
    calls = [
        make_call("a", "echo", raw="{"),
        call_of("echo", "b", word="fine"),
        call_of("nobody", "c"),
        call_of("shout", "d", word="fine"),
        call_of("shout", "e", word=None),
    ]
    for limit in (1, 2, None):
        results = results_of(calls, tools_of(echo, shout), limit=limit)
        assert [bool(result.is_error) for result in results] == [True, False, True, False, True]
        assert [result.call_id for result in results] == list("abcde")


def test_a_tool_may_change_its_arguments() -> None:
    """The call keeps what the model sent."""

    async def grow(items: list[int]) -> list[int]:
        items.append(4)
        return items

    call = ToolCall("c", "grow", input={"items": [1]})
    for _ in range(2):
        assert results_of([call], tools_of(grow))[0].data == [1, 4]
    assert call.arguments == {"items": [1]}


# --- timeouts


def test_a_tool_that_exceeds_its_timeout_is_abandoned() -> None:
    """The result has the timeout, and says that the outcome is unknown."""
    ended = []

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    result = result_of_one(slow, timeout=0.01)
    assert ended == [True]
    assert result.is_error
    assert "took longer than 0.01 seconds" in result.text
    assert "outcome is unknown" in result.text


def test_a_hanging_thread_is_abandoned() -> None:
    """A blocking tool that takes too long continues alone; its result is dropped."""
    gate, done = threading.Event(), threading.Event()

    def hangs() -> Coroutine[Any, Any, str]:
        gate.wait(30)
        done.set()
        return echo("late")

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # there must be no warning about the coroutine
        result = result_of_one(hangs, timeout=0.01)
        gate.set()
        assert done.wait(30)
        gc.collect()
    assert "took longer" in result.text


def test_a_tools_own_timeout_takes_precedence() -> None:
    """It may be shorter or longer than the executor's."""
    slow, patient = tool_of(forever, timeout=0.01), tool_of(echo, timeout=60)
    assert "than 0.01 seconds" in result_of_one(slow, timeout=60).text
    (result,) = results_of([call_of("echo", word="a")], tools_of(patient), timeout=1e-9)
    assert result.text == "a"


def test_a_failure_after_the_timeout_is_still_a_timeout() -> None:
    """For a tool that raises when it is cancelled."""

    async def sore() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ValueError from None

    assert "took longer" in result_of_one(sore, timeout=0.01).text


def test_a_timeout_does_not_affect_other_tools() -> None:
    """The others end normally."""
    calls = [call_of("forever", "a"), call_of("echo", "b", word="fine")]
    late, fine = results_of(calls, tools_of(tool_of(forever, timeout=0.01), echo))
    assert (late.is_error, fine.text) == (True, "fine")


_HANGING = """
import asyncio, threading
from dragoman.agent.executor import ToolExecutor
from dragoman.model.functions.tool import tool
from dragoman.model.tools import ToolCall

@tool
def hang() -> None:
    "Hangs."
    threading.Event().wait()

calls = [ToolCall("c", "hang", raw="")]
(result,) = asyncio.run(ToolExecutor(timeout=0.05).execute_batch(calls, {"hang": hang}))
print(result.is_error)
"""


def test_a_hanging_tool_does_not_keep_the_program_from_exiting() -> None:
    """The process ends while the tool still hangs."""
    command = [sys.executable, "-c", _HANGING]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)
