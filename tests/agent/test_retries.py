"""Invalid calls and answers: how often the model may try again."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Agent, tool
from dragoman.agent import Hooks, RetryRequested, RunContext, RunLimits
from dragoman.errors import InvalidInputError, LimitExceeded, ToolRetry
from tests.agent.scripts import asks, call, model, weather


@tool(retries=2)
def picky(word: str) -> str:
    """Takes one word only."""
    if word != "good":
        msg = "try `good`"
        raise ToolRetry(msg)
    return "fine"


def _tries(*words: Any) -> list[Any]:
    return [asks(call("picky", f"c{n}", word=word)) for n, word in enumerate(words)]


async def test_a_tool_may_request_another_call() -> None:
    """Arguments that don't match count as well; the model gets the reason each time."""
    agent = Agent(model(*_tries("bad", 5, "good"), "Done."), tools=[picky])
    result = await agent.send("Go")
    told = [m.tool_results[0].text for m in result.messages if m.tool_results]
    assert "try `good`" in told[0]
    assert "$.word: expected a string" in told[1]
    assert (told[2], result.output) == ("fine", "Done.")


async def test_after_its_retries_the_run_ends() -> None:
    """The partial result has all messages."""
    agent = Agent(model(*_tries("a", "b", "c", "good")), tools=[picky])
    with pytest.raises(
        LimitExceeded, match=r"`picky` failed 3 times in a row \(retries=2"
    ) as raised:
        await agent.send("Go")
    assert len(raised.value.partial.messages) == 7


async def test_a_successful_call_resets_the_count() -> None:
    """Beside others in the same round, too."""
    both = asks(call("picky", "x", word="bad"), call("picky", "y", word="good"))
    script = [*_tries("a", "b"), both, *_tries("c", "d", "good"), "Done."]
    assert (await Agent(model(*script), tools=[picky]).send("Go")).output == "Done."


async def test_the_limit_of_a_run_is_for_tools_without_their_own() -> None:
    """Without any, the model may retry as long as the other limits allow."""

    @tool
    def broken() -> str:
        """Never works."""
        msg = "no"
        raise ValueError(msg)

    script = [*(asks(call("broken", f"c{n}")) for n in range(4)), "I give up."]
    agent = Agent(model(*script), tools=[broken])
    assert (await agent.send("Go")).output == "I give up."
    agent = agent.with_model(model(*script))
    with pytest.raises(LimitExceeded, match="failed once"):
        await agent.send("Go", limits=RunLimits(retries=0))


async def test_calls_that_were_not_run_are_no_retries() -> None:
    """A rejection by a hook or a person is not the model's mistake."""

    @tool(requires_approval=True, retries=0)
    def delete() -> str:
        """Delete everything."""
        return "gone"

    script = [asks(call("delete", "a")), asks(call("delete", "b")), "As you like."]
    agent = Agent(model(*script), tools=[delete], approve=lambda *_: False)
    assert (await agent.send("Go")).output == "As you like."


@pytest.mark.parametrize("value", [-1, 1.5, True, "two"])
def test_retries_are_integers(value: Any) -> None:
    """Other values are rejected."""
    with pytest.raises(InvalidInputError, match="retries"):
        tool(retries=value)(picky.function)
    with pytest.raises(InvalidInputError, match="retries"):
        RunLimits(retries=value)


# --- text answers


def _short(text: str, _run: RunContext) -> str | None:
    if len(text) > 5:
        msg = "At most five letters."
        raise ToolRetry(msg)
    return text.upper() if text.islower() else None


async def test_a_text_answer_may_be_rejected() -> None:
    """With advice; the output is the accepted answer, and `text` has all of them."""
    agent = Agent(model("Much too long.", "Fine."), hooks=Hooks(before_output=_short))
    result = await agent.send("Hi")
    assert (result.output, result.text) == ("Fine.", "Much too long.\nFine.")
    assert [m.text for m in result.messages] == [
        "Hi", "Much too long.", "At most five letters.", "Fine."
    ]  # fmt: skip


async def test_the_hooks_return_value_is_the_output() -> None:
    """`text` stays the model's."""
    result = await Agent(model("fine"), hooks=Hooks(before_output=_short)).send("Hi")
    assert (result.output, result.text) == ("FINE", "fine")


async def test_a_stream_reports_a_repeated_request() -> None:
    """An event reports it, and the accepted answer is the output."""
    agent = Agent(model("Much too long.", "Fine."), hooks=Hooks(before_output=_short))
    async with agent.stream("Hi") as stream:
        events = [event async for event in stream.events()]
    assert [event.reason for event in events if isinstance(event, RetryRequested)] == [
        "the answer was rejected"
    ]
    assert stream.result.output == "Fine."


async def test_output_retries_limit_texts_and_values() -> None:
    """`output_retries` is for both."""
    agent = Agent(model("Too long.", "Too long."), hooks=Hooks(before_output=_short),
                  output_retries=1)  # fmt: skip
    with pytest.raises(LimitExceeded, match="rejected 2 times"):
        await agent.send("Hi")


async def test_tools_come_before_the_answer() -> None:
    """Text beside calls is not the answer."""
    calls = asks(call("weather", city="Basel")).replace(finish=None)
    seen: list[str] = []
    hooks = Hooks(before_output=lambda text, _run: seen.append(text))
    await Agent(model(calls, "Rain."), tools=[weather], hooks=hooks).send("Hi")
    assert seen == ["Rain."]
