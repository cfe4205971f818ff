"""Tools run concurrently or in turn, and events report them as they happen."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import pytest

from dragoman import Agent, ChatHistory, SessionIdentity
from dragoman.agent.context import RunContext
from dragoman.agent.events import ToolFinished, ToolStarted
from dragoman.agent.executor import ToolExecutor
from dragoman.errors import InvalidInputError
from dragoman.model.functions.tool import Tool, tool
from dragoman.model.portal import run as run_blocking
from dragoman.model.tools import ToolCall, ToolDefinition, ToolResult
from tests.agent.scripts import asks, call, model, weather
from tests.agent.toolkit import (
    Tools,
    call_of,
    echo,
    events_of,
    result_of_one,
    results_of,
    shout,
    tools_of,
)


@pytest.mark.parametrize("limit", [1, 2, 8, None])
@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_results_are_in_the_order_of_the_calls(count: int, limit: int | None) -> None:
    """However many run at once, results are in call order."""
    calls = [call_of(("echo", "shout")[i % 2], f"c{i}", word=f"w{i}") for i in range(count)]
    results = results_of(calls, tools_of(echo, shout), limit=limit)
    assert [result.call_id for result in results] == [call.id for call in calls]
    assert [result.tool_name for result in results] == [call.name for call in calls]
    assert [result.text for result in results] == [("w", "W")[i % 2] + str(i) for i in range(count)]
    assert not any(result.is_error for result in results)


def _crowd(limit: int | None, *, is_async: bool) -> int:
    """The largest number of six tools that ran at the same time."""
    running, most, lock = 0, 0, threading.Lock()
    gate = threading.Event()

    def enter() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if running == 6:
                gate.set()

    def leave() -> None:
        nonlocal running
        with lock:
            running -= 1

    async def waits() -> None:
        enter()
        for _ in range(5):
            await asyncio.sleep(0)
        leave()

    def blocks() -> None:
        enter()
        gate.wait(0.02)
        leave()

    function = waits if is_async else blocks
    calls = [call_of(function.__name__, f"c{i}") for i in range(6)]
    results_of(calls, tools_of(function), limit=limit)
    return most


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize(("limit", "most"), [(1, 1), (2, 2), (4, 4), (None, 6)])
def test_concurrency_is_limited(limit: int | None, most: int, is_async: bool) -> None:
    """As many run concurrently as allowed, and never more."""
    seen = _crowd(limit, is_async=is_async)
    assert seen <= most
    assert seen == most or not is_async  # threads start when the system schedules them


def test_blocking_tools_run_concurrently() -> None:
    """Two functions that wait for each other, on threads, both end."""
    barrier = threading.Barrier(2, timeout=20)

    def meet() -> str:
        barrier.wait()
        return "met"

    results = results_of([call_of("meet", "a"), call_of("meet", "b")], tools_of(meet))
    assert [result.text for result in results] == ["met", "met"]


def test_async_tools_run_on_the_loop_and_others_on_threads() -> None:
    """The loop is never blocked by a plain function."""
    seen: dict[str, threading.Thread] = {}

    async def on_loop() -> None:
        seen["loop"] = threading.current_thread()

    def on_thread() -> None:
        seen["thread"] = threading.current_thread()

    results_of([call_of("on_loop"), call_of("on_thread")], tools_of(on_loop, on_thread))
    assert seen["loop"] is threading.main_thread()
    assert seen["thread"] is not threading.main_thread()
    assert seen["thread"].daemon


def test_a_function_that_returns_an_awaitable_is_awaited() -> None:
    """Even if a decorator hides that the function is async."""

    def hidden(word: str) -> Awaitable[str]:
        return echo(word)

    (result,) = results_of([call_of("hidden", word="hi")], tools_of(hidden))
    assert (result.text, result.is_error) == ("hi", False)


def test_context_variables_are_passed_to_tools() -> None:
    """A tool sees the caller's context, on a thread as well."""
    variable: ContextVar[str] = ContextVar("variable", default="unset")

    def reads() -> str:
        return variable.get()

    async def reads_too() -> str:
        return variable.get()

    async def main() -> list[ToolResult]:
        variable.set("set")
        calls = [call_of("reads"), call_of("reads_too")]
        return await ToolExecutor().execute_batch(calls, tools_of(reads, reads_too))

    assert [result.text for result in asyncio.run(main())] == ["set", "set"]


def test_a_blocking_tool_may_use_our_blocking_api() -> None:
    """Even if its own run is on the background loop."""

    def outer(word: str) -> str:
        (result,) = run_blocking(
            ToolExecutor().execute_batch([call_of("shout", word=word)], tools_of(shout))
        )
        return result.text

    (result,) = run_blocking(
        ToolExecutor().execute_batch([call_of("outer", word="a")], tools_of(outer))
    )
    assert result.text == "A"


def test_unbounded_recursion_of_tools_is_stopped() -> None:
    """A tool that runs itself again and again ends with an error."""

    def again() -> str:
        return asyncio.run(ToolExecutor().execute_batch([call_of("again")], tools_of(again)))[
            0
        ].text

    assert "RecursionError" in result_of_one(again).text


def test_a_repeated_id_is_two_calls() -> None:
    """Both run, and both results have the id."""
    calls = [call_of("echo", "same", word="a"), call_of("echo", "same", word="b")]
    results = results_of(calls, tools_of(echo))
    assert [(result.call_id, result.text) for result in results] == [("same", "a"), ("same", "b")]


def test_a_repeated_call_object_runs_twice() -> None:
    """Results are kept by position, not by call."""
    call = call_of("echo", word="a")
    assert [result.text for result in results_of([call, call], tools_of(echo))] == ["a", "a"]


async def whose(run: RunContext[str], word: str) -> str:
    """Knows the run."""
    assert run.call is not None
    return f"{run.deps} {run.call.id} {word}"


def whose_else(word: str, run: RunContext[Any] | None = None, /) -> str:
    """Takes it by position."""
    assert run is not None
    assert run.call is not None
    return f"{run.deps} {run.call.id} {word}"


@pytest.mark.parametrize("function", [whose, whose_else])
def test_the_context_is_passed_in(function: Any) -> None:
    """A parameter of that type gets the current run; outside a run, a context without deps."""
    tools, calls = tools_of(function), [call_of(function.__name__, "c7", word="w")]
    context = RunContext(deps="mine")
    (given_one,) = asyncio.run(ToolExecutor().execute_batch(calls, tools, context))
    (bare,) = asyncio.run(ToolExecutor().execute_batch(calls, tools))
    assert (given_one.text, bare.text) == ("mine c7 w", "None c7 w")


def test_the_model_can_not_set_the_context() -> None:
    """An argument of that name is rejected, like any unknown one."""
    (result,) = results_of([call_of("whose", word="w", run={"deps": "evil"})], tools_of(whose))
    assert result.is_error
    assert "run" in result.text or "properties" in result.text


# --- free-text tools


def _free(function: Callable[..., Any], name: str = "run") -> Tools:
    return {name: Tool(function, ToolDefinition(name, "Runs it.", kind="custom"))}


def _first(code: str) -> str:
    return code


def _with_run(run: RunContext[Any], code: str = "") -> str:
    return f"{code}{run.deps or ''}"


def _last(mode: str, code: str) -> str:
    assert mode == "m"
    return code


@pytest.mark.parametrize("function", [_first, _with_run, functools.partial(_last, mode="m")])
def test_free_text_tools_get_the_text(function: Callable[..., Any]) -> None:
    """The model's text is their only argument."""
    for text in ("print(1)", '{"a": 1}', ""):
        call = ToolCall("c", "run", raw=text, kind="custom")
        (result,) = results_of([call], _free(function))
        assert (result.text, result.kind, result.is_error) == (text, "custom", False)


def test_free_text_within_an_object_is_unwrapped() -> None:
    """In dialects without free-text tools, the text is in a named argument."""
    (result,) = results_of([ToolCall("c", "run", input={"input": "ls"})], _free(_first))
    assert result.text == "ls"


def test_free_text_needs_a_parameter() -> None:
    """A function without parameters can't be such a tool."""
    call = ToolCall("c", "run", raw="ls", kind="custom")
    (result,) = results_of([call], _free(lambda: "x"))
    assert result.is_error
    assert "no parameter" in result.text


def test_free_text_for_a_tool_with_parameters_is_rejected() -> None:
    """A text is not an object."""
    (result,) = results_of([ToolCall("c", "echo", raw="hi", kind="custom")], tools_of(echo))
    assert result.is_error
    assert "not a JSON object" in result.text


# --- events


def test_events_report_calls() -> None:
    """Each call that is run has a start and an end; the others only have an end."""
    calls = [
        call_of("echo", "a", word="x"),
        call_of("nobody", "b"),
        call_of("shout", "c", word="y"),
    ]
    for limit in (1, 2, None):
        events = asyncio.run(events_of(calls, tools_of(echo, shout), limit=limit))
        begun = [each.call.id for each in events if isinstance(each, ToolStarted)]
        ended = {each.call.id: each for each in events if isinstance(each, ToolFinished)}
        assert begun == ["a", "c"]
        assert ended.keys() == set("abc")
        assert all(each.result.call_id == each.call.id for each in ended.values())
        for id in begun:
            places = [at for at, each in enumerate(events) if each.call.id == id]
            assert [type(events[at]) for at in places] == [ToolStarted, ToolFinished]
        assert ended["b"].seconds == 0.0
        assert ended["a"].seconds > 0.0


def test_the_first_to_end_is_reported_first() -> None:
    """Its result doesn't wait for slower tools."""

    async def main() -> list[str]:
        gate = asyncio.Event()

        async def last() -> None:
            await gate.wait()

        order = []
        calls = [call_of("last", "slow"), call_of("echo", "quick", word="a")]
        async for event in ToolExecutor().execute(calls, tools_of(last, echo)):
            if isinstance(event, ToolFinished):
                order.append(event.call.id)
                gate.set()
        return order

    assert asyncio.run(main()) == ["quick", "slow"]


@pytest.mark.parametrize("limit", [1, 2, None])
@pytest.mark.parametrize("count", [1, 3])
def test_a_tool_starts_after_its_event_was_read(count: int, limit: int | None) -> None:
    """A reader can store the start first: nothing has run by then."""
    ran: list[str] = []

    async def notes(word: str) -> None:
        ran.append(word)

    async def main() -> None:
        calls = [call_of("notes", f"c{i}", word=f"c{i}") for i in range(count)]
        async for event in ToolExecutor(limit=limit).execute(calls, tools_of(notes)):
            for _ in range(5):
                await asyncio.sleep(0)
            assert (event.call.id in ran) is isinstance(event, ToolFinished)

    asyncio.run(main())
    assert len(ran) == count


def test_a_single_call_creates_no_task() -> None:
    """It runs in the caller's task."""

    async def main() -> bool:
        async def here() -> bool:
            return asyncio.current_task() is outer

        outer = asyncio.current_task()
        (result,) = await ToolExecutor().execute_batch([call_of("here")], tools_of(here))
        return result.data is True

    assert asyncio.run(main())


def test_starts_together() -> None:
    """The limit determines how many calls start at once."""
    assert ToolExecutor(limit=2).runs_at_once(2)
    assert not ToolExecutor(limit=2).runs_at_once(3)
    assert ToolExecutor(limit=None).runs_at_once(1000)


# --- the caller's mistakes


@pytest.mark.parametrize(
    "options",
    [{"limit": 0}, {"limit": True}, {"limit": 1.5}, {"timeout": 0}, {"timeout": -1},
     {"timeout": "1"}, {"timeout": float("nan")}],
)  # fmt: skip
def test_options_are_checked(options: dict[str, Any]) -> None:
    """A limit is at least one, a timeout is positive."""
    with pytest.raises(InvalidInputError):
        ToolExecutor(**options)


@pytest.mark.parametrize(
    ("calls", "tools", "context"),
    [
        (call_of("echo"), {}, None),
        (["echo"], {}, None),
        ([call_of("echo")], [echo], None),
        ([call_of("echo")], {"echo": echo}, None),
        ([call_of("echo")], {}, "deps"),
        (3, {}, None),
    ],
)
def test_invalid_calls_and_tools_raise(calls: Any, tools: Any, context: Any) -> None:
    """Programming errors are not sent to the model; nothing is run."""
    with pytest.raises(InvalidInputError):
        ToolExecutor().execute(calls, tools, context)
    with pytest.raises(InvalidInputError):
        asyncio.run(ToolExecutor().execute_batch(calls, tools, context))


@pytest.mark.parametrize("limit", [None, 3])
async def test_a_tool_may_have_its_own_concurrency_limit(limit: int | None) -> None:
    """Its further calls wait without delaying other tools."""
    running: list[str] = []
    most: dict[str, int] = {}

    async def work(name: str, n: int) -> str:
        running.append(name)
        most[name] = max(most.get(name, 0), running.count(name))
        for _ in range(3):
            await asyncio.sleep(0)
        running.remove(name)
        return f"{name} {n}"

    @tool(concurrency=1)
    async def alone(n: int) -> str:
        """One at a time."""
        return await work("alone", n)

    @tool
    async def many(n: int) -> str:
        """Any number."""
        return await work("many", n)

    calls = [call_of("alone", f"a{n}", n=n) for n in range(4)]
    calls += [call_of("many", f"m{n}", n=n) for n in range(4)]
    tools = {"alone": alone, "many": many}
    results = await ToolExecutor(limit=limit).execute_batch(calls, tools)
    expected = [f"{name} {n}" for name in ("alone", "many") for n in range(4)]
    assert [result.text for result in results] == expected
    assert most == {"alone": 1, "many": 4 if limit is None else limit - 1}


class Logged(ToolExecutor):
    """A custom executor that wraps the events of ours."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.told: list[str] = []

    async def execute(
        self,
        calls: Sequence[ToolCall],
        tools: Mapping[str, Tool[..., Any]],
        context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[ToolStarted | ToolFinished]:
        """Record the events."""
        async for event in super().execute(calls, tools, context):
            self.told.append(f"{type(event).__name__} {event.call.id}")
            yield event


class Loud(ToolExecutor):
    """A custom executor that replaces ours and runs nothing."""

    async def execute(
        self,
        calls: Sequence[ToolCall],
        tools: Mapping[str, Tool[..., Any]],  # noqa: ARG002 - none is run
        context: RunContext[Any] | None = None,  # noqa: ARG002 - nor told anything
    ) -> AsyncGenerator[ToolStarted | ToolFinished]:
        """Every call has the same result."""
        for each in calls:
            yield ToolFinished(each, ToolResult.success(each.id, "LOUD", tool_name=each.name))


class Counting(ToolExecutor):
    """A custom executor that overrides `run`, which agents call."""

    ran = 0

    async def run(self, calls: Sequence[ToolCall], *rest: Any, **named: Any) -> None:
        """Count the calls."""
        self.ran += len(calls)
        await super().run(calls, *rest, **named)


@pytest.mark.parametrize("history", [None, "memory://"])
async def test_agents_use_a_custom_execute(history: str | None) -> None:
    """Whether it wraps or replaces ours, with and without a stored history."""
    kept = None if history is None else ChatHistory(SessionIdentity(chat="7"), history)
    script = asks(call("weather", "a", city="Basel"), call("weather", "b", city="Bern")), "Done."
    logged = Logged(limit=1)
    result = await Agent(model(*script), tools=[weather], executor=logged).send("Hi", history=kept)
    assert [each.text for each in result.messages[2].tool_results] == [
        "rain in Basel", "rain in Bern"
    ]  # fmt: skip
    assert logged.told == ["ToolStarted a", "ToolFinished a", "ToolStarted b", "ToolFinished b"]
    loud = await Agent(model(*script), tools=[weather], executor=Loud()).send("Hi", history=kept)
    assert [each.text for each in loud.messages[2].tool_results] == ["LOUD", "LOUD"]


async def test_an_executor_may_override_run_as_well() -> None:
    """Agents, `execute` and `execute_batch` use it."""
    counting = Counting()
    calls = [call("weather", "a", city="Basel")]
    await Agent(model(asks(*calls), "Done."), tools=[weather], executor=counting).send("Hi")
    assert len(await counting.execute_batch(calls, {"weather": weather})) == 1
    assert [event async for event in counting.execute(calls, {"weather": weather})]
    assert counting.ran == 3


async def test_an_executor_with_events_of_other_calls_is_an_error() -> None:
    """The error is clear, and no result is misplaced."""

    class Wrong(ToolExecutor):
        async def execute(
            self, *_given: Any, **_named: Any
        ) -> AsyncGenerator[ToolStarted | ToolFinished]:
            yield ToolStarted(call("weather", "a", city="Basel"))

    agent = Agent(model(asks(call("weather", "a", city="Basel"))), tools=[weather],
                  executor=Wrong())  # fmt: skip
    with pytest.raises(InvalidInputError, match="call objects that it was given"):
        await agent.send("Hi")
