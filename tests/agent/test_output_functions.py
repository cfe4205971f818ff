"""A function, or one of several types, as the output of an agent."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Agent, Message, RunContext, ToolCall, tool
from dragoman.agent import Hooks
from dragoman.agent.output.typed import TypedOutput
from dragoman.errors import InvalidInputError, LimitExceeded, ToolRetry, ToolTimeout
from tests.agent.scripts import asks, call, model, weather

MODES = pytest.mark.parametrize("mode", ["native", "tool", "two_phase"])


@dataclass
class Team:
    """Who plays."""

    name: str


@dataclass
class Match:
    """Who plays whom."""

    home: Team
    guest: Team
    deps: Any = None


def returned(**arguments: Any) -> Message:
    """The call that returns the value."""
    return asks(ToolCall.create("r", "return_result", arguments))


def match(home: str, guest: Team) -> Match:
    """Arrange a match."""
    return Match(Team(home), guest)


async def match_soon(home: Team, guest: Team, run: RunContext[str]) -> Match:
    """Arrange a match."""
    return Match(home, guest, run.deps)


ARGUMENTS: dict[str, Any] = {"home": "Basel", "guest": {"name": "Mostar"}}
AGAIN = "Not Basel again"
MATCH = Match(Team("Basel"), Team("Mostar"))


async def test_a_function_is_called_with_the_models_arguments() -> None:
    """Its return value is the output, and its parameters are the schema for the model."""
    scripted = model(returned(**ARGUMENTS))
    result = await Agent(scripted, output=match).send("Who plays?")
    assert result.output == MATCH
    (told,) = scripted.requests[0].tools
    assert told.parameters["properties"]["home"] == {"type": "string"}  # type: ignore[union-attr,index]
    assert told.parameters["required"] == ["home", "guest"]  # type: ignore[union-attr,index]


@MODES
async def test_an_output_function_works_in_every_mode(mode: Any) -> None:
    """As text, through the tool, or in a second request: the function is called once."""
    called: list[str] = []

    def noted(home: str) -> str:
        called.append(home)
        return home.upper()

    answer = returned(home="Basel") if mode == "tool" else '{"home": "Basel"}'
    answers = ["Let me think.", answer] if mode == "two_phase" else [answer]
    result = await Agent(model(*answers), output=noted, output_mode=mode).send("Who?")
    assert (result.output, called) == ("BASEL", ["Basel"])


async def test_an_async_function_gets_the_run() -> None:
    """`RunContext` is filled in, and is not part of the schema."""
    scripted = model(returned(home={"name": "Basel"}, guest={"name": "Mostar"}))
    result = await Agent(scripted).send("Who?", output=match_soon, deps="the cup")
    assert result.output == Match(Team("Basel"), Team("Mostar"), "the cup")
    assert "run" not in scripted.requests[0].tools[0].parameters["properties"]  # type: ignore[union-attr,index]


async def test_a_plain_function_does_not_block_the_loop() -> None:
    """It runs on a thread, as tools do."""

    def where(home: str) -> tuple[str, bool]:
        return home, threading.current_thread() is threading.main_thread()

    result = await Agent(model(returned(home="Basel")), output=where).send("Who?")
    assert result.output == ("Basel", False)


@pytest.mark.parametrize(
    "function",
    [
        match,
        tool(match),
        partial(match),
        tool(name="other")(match),
        (lambda home, guest: match(home, Team(**guest))),
    ],
    ids=["plain", "tool", "partial", "renamed", "lambda"],
)
async def test_every_kind_of_function(function: Any) -> None:
    """Tools, partials, lambdas and methods are functions."""
    result = await Agent(model(returned(**ARGUMENTS)), output=function).send("Who?")
    assert result.output == MATCH


async def test_a_method_is_bound() -> None:
    """The agent's type cache doesn't keep its object alive."""

    class League:
        def play(self, home: str) -> tuple[object, str]:
            return self, home

    league = League()
    result = await Agent(model(returned(home="Basel"))).send("Who?", output=league.play)
    assert result.output == (league, "Basel")


async def test_it_may_reject_the_value() -> None:
    """`ToolRetry` is advice to the model, within `output_retries`."""

    def picky(home: str) -> str:
        if home == "Basel":
            raise ToolRetry(AGAIN)
        return home

    again = model(returned(home="Basel"), returned(home="Mostar"))
    result = await Agent(again, output=picky).send("Who?")
    assert result.output == "Mostar"
    assert AGAIN in result.messages[2].tool_results[0].text
    with pytest.raises(LimitExceeded):
        await Agent(model(returned(home="Basel")), output=picky, output_retries=0).send("Who?")


async def test_invalid_arguments_are_requested_again() -> None:
    """The function is not called with them."""
    scripted = model(returned(home=5), returned(**ARGUMENTS))
    result = await Agent(scripted, output=match).send("Who?")
    assert (result.output, len(scripted.requests)) == (MATCH, 2)


async def test_other_exceptions_end_the_run() -> None:
    """As with hooks: it is the caller's own code."""

    def broken(home: str) -> str:
        raise KeyError(home)

    with pytest.raises(KeyError):
        await Agent(model(returned(home="Basel")), output=broken).send("Who?")


async def test_its_timeout_is_kept() -> None:
    """A tool that takes too long raises our error."""
    forever = threading.Event()

    @tool(timeout=0.01)
    def slow(home: str) -> str:
        """Take for ever."""
        forever.wait()
        return home

    try:
        with pytest.raises(ToolTimeout, match="slow"):
            await Agent(model(returned(home="Basel")), output=slow).send("Who?")
    finally:
        forever.set()


async def test_hooks_get_its_return_value() -> None:
    """`before_output` is called with the output, not with the arguments."""
    seen: list[Any] = []
    hooks = Hooks(before_output=lambda value, _run: seen.append(value))
    await Agent(model(returned(**ARGUMENTS)), output=match, hooks=hooks).send("Who?")
    assert seen == [MATCH]


async def test_tools_run_first() -> None:
    """Rounds of tools come before it, and a stream has the same result."""
    answers = (asks(call("weather", "c", city="Basel")), returned(**ARGUMENTS))
    stream = Agent(model(*answers), tools=[weather], output=match).stream("Who?")
    assert (await stream.collect()).output == MATCH


@pytest.mark.parametrize(
    "wrong",
    [
        len,
        tool(requires_approval=True)(match),
        (lambda *names: names),
        object(),
        [],
        [5],
        [match],
    ],
    ids=["builtin", "approval", "collector", "value", "empty list", "values", "functions"],
)
def test_invalid_outputs_raise(wrong: Any) -> None:
    """When the agent is created."""
    with pytest.raises(InvalidInputError):
        Agent(model(), output=wrong)


@pytest.mark.parametrize("kind", [list, tuple])
async def test_one_of_several_types(kind: Any) -> None:
    """`[A, B]` is `A | B`."""
    scripted = model(returned(result={"name": "Basel"}))
    result = await Agent(scripted).send("Who?", output=kind([Team, int]))
    assert result.output == Team("Basel")
    one = await Agent(model(returned(name="Basel")), output=kind([Team])).send("Who?")
    assert one.output == Team("Basel")


KINDS = st.sampled_from([int, str, bool, list[int], Team, dict[str, int]])


@given(st.lists(KINDS, min_size=1, max_size=5), st.booleans())
def test_a_list_is_the_union_of_its_types(kinds: list[Any], has_none: bool) -> None:
    """In order: the first type that matches is used. Text alone is text."""
    if has_none:
        kinds = [*kinds, None]
    listed, joined = TypedOutput.of(kinds), TypedOutput.of(reduce(or_, kinds))
    assert (listed is None) is (joined is None)
    if listed is not None and joined is not None:
        assert listed.schema == joined.schema


@given(st.recursive(st.sampled_from([int, None, Team, "s3cret", 5, match, Any, Annotated[int, []],
                                     list, Literal[1], {}, b"s3cret"]),
                    lambda inner: st.lists(inner) | st.tuples(inner)))  # fmt: skip
def test_any_list_is_accepted_or_rejected(asked: Any) -> None:
    """With our own error, which quotes nothing."""
    try:
        TypedOutput.of(asked)
    except InvalidInputError as error:
        assert "s3cret" not in str(error)  # noqa: PT017 - it may or may not be raised
