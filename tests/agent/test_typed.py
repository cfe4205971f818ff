"""Runs with a typed output, with and without tools."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from msgspec import UNSET
from pydantic import BaseModel, Field

from dragoman import Agent, FinishReason, Message, Request, Result
from dragoman.agent import Hooks
from dragoman.errors import LimitExceeded, Refused, ToolRetry
from dragoman.model.events import PartDelta, PartStart, ResponseEnd, ResponseStart
from dragoman.model.parts import Text
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.testing import ScriptedModel, TestModel
from tests.agent.scripts import asks, call, model, weather

Mode = Literal["native", "tool", "two_phase"]
GOOD = '{"city": "Basel", "degrees": 3}'


@dataclass
class Report:
    """The weather in a city."""

    city: str
    degrees: int


BASEL = Report("Basel", 3)


def returned(id: str = "r", **arguments: Any) -> ToolCall:
    """The call that returns the value."""
    return call("return_result", id, **arguments)


def asked(agent: Agent[Any, Any]) -> list[Request]:
    """The requests to the model."""
    assert isinstance(agent.model, ScriptedModel)
    return agent.model.requests


async def test_native_output() -> None:
    """`native`: the schema is sent, and the answer is parsed."""
    agent = Agent(model(GOOD), output=Report, output_mode="native")
    result = await agent.send("Weather?")
    assert result.output == BASEL
    assert result.text == GOOD
    output = asked(agent)[0].output
    assert output is not None
    assert output.format == "schema"
    assert not asked(agent)[0].tools


async def test_output_by_a_tool() -> None:
    """`tool`: `return_result` has to be called; its call gets a result, so the history is valid."""
    agent = Agent(model(asks(returned(city="Basel", degrees=3))), output=Report, output_mode="tool")
    result = await agent.send("Weather?")
    assert result.output == BASEL
    assert [tool.name for tool in asked(agent)[0].tools] == ["return_result"]
    assert asked(agent)[0].tool_choice.mode == "required"  # type: ignore[union-attr]
    assert [m.role.value for m in result.messages] == ["user", "assistant", "tool"]
    assert result.messages[-1].tool_results[0].is_error is False


async def test_output_in_two_phases() -> None:
    """First the tools, then without them the schema."""
    script = model(asks(call("weather", city="Basel")), "It is three degrees.", GOOD)
    agent = Agent(script, tools=[weather], output=Report, output_mode="two_phase")
    result = await agent.send("Weather?")
    assert result.output == BASEL
    first, second, third = asked(agent)
    assert (first.output, second.output) == (None, None)
    assert third.output is not None
    assert not third.tools
    assert [m.role.value for m in result.messages] == [
        "user", "assistant", "tool", "assistant", "user", "assistant"
    ]  # fmt: skip


@pytest.mark.parametrize("mode", ["native", "tool"])
async def test_tools_and_a_type_together(mode: Mode) -> None:
    """Rounds of tools first, then the value."""
    last: Any = GOOD if mode == "native" else asks(returned(city="Basel", degrees=3))
    script = model(
        asks(call("weather", "a", city="Basel")), asks(call("weather", "b", city="B")), last
    )
    agent = Agent(script, tools=[weather], output=Report, output_mode=mode)
    assert (await agent.send("Weather?")).output == BASEL
    assert len(asked(agent)) == 3


@pytest.mark.parametrize("mode", ["native", "tool"])
async def test_the_other_form_is_accepted_as_well(mode: Mode) -> None:
    """Models mix them up: a text for a call, and a call for a text."""
    answer: Any = GOOD if mode == "tool" else asks(returned(city="Basel", degrees=3))
    assert (await Agent(model(answer), output=Report, output_mode=mode).send("?")).output == BASEL


async def test_the_value_beside_other_calls() -> None:
    """They are run, all results are one message, and the run is over."""
    calls = asks(call("weather", "a", city="Basel"), returned(city="Basel", degrees=3))
    result = await Agent(model(calls), tools=[weather], output=Report).send("Weather?")
    assert result.output == BASEL
    assert [each.call_id for each in result.messages[-1].tool_results] == ["a", "r"]


@pytest.mark.parametrize("mode", ["native", "tool"])
async def test_an_invalid_value_is_sent_back_a_few_times(mode: Mode) -> None:
    """With what is wrong, and where; then it is an error."""
    bad: Any = '{"city": "Basel"}' if mode == "native" else asks(returned(city="Basel"))
    good: Any = GOOD if mode == "native" else asks(returned("r2", city="Basel", degrees=3))
    result = await Agent(model(bad, good), output=Report, output_mode=mode).send("Weather?")
    assert result.output == BASEL
    told = result.messages[2]
    assert "degrees" in told.text
    assert told.role.value == ("user" if mode == "native" else "tool")
    hopeless = Agent(ScriptedModel([bad], repeat=True), output=Report, output_mode=mode,
                     output_retries=1)  # fmt: skip
    with pytest.raises(LimitExceeded, match="2 attempts") as caught:
        await hopeless.send("Weather?")
    assert "degrees" in str(caught.value)  # what was wrong, and what to do about it
    assert "output_retries" in str(caught.value)
    assert "Basel" not in str(caught.value)
    assert isinstance(caught.value.partial, Result)
    assert "Basel" in str(caught.value.partial.messages.to_list())


async def test_a_hooks_advice_is_only_for_the_model() -> None:
    """It may quote the value: the error that ends the run does not repeat it."""

    def never(report: Report, _run: object) -> None:
        msg = f"not {report.city} again"
        raise ToolRetry(msg)

    agent = Agent(
        ScriptedModel([GOOD], repeat=True), output=Report, hooks=Hooks(before_output=never)
    )
    with pytest.raises(LimitExceeded, match="3 attempts;") as caught:
        await agent.send("Weather?")
    assert "Basel" not in str(caught.value)


async def test_text_in_place_of_the_tool() -> None:
    """The model is reminded."""
    script = model("It is cold.", asks(returned(city="Basel", degrees=3)))
    result = await Agent(script, output=Report, output_mode="tool").send("Weather?")
    assert result.output == BASEL
    assert "return_result" in result.messages[2].text


async def test_a_value_in_text_is_validated_as_well() -> None:
    """In place of the tool call, too: the model gets the problems."""
    scripted = model('{"city": "Basel"}', '{"city": "Basel", "degrees": 99}', GOOD)

    def cooler(report: Report, _run: object) -> None:
        if report.degrees > 50:
            msg = "nowhere is it that hot"
            raise ToolRetry(msg)

    hooks = Hooks(before_output=cooler)
    result = await Agent(scripted, output=Report, output_mode="tool", hooks=hooks).send("Weather?")
    assert result.output == BASEL
    first, second = (request.messages[-1].text for request in scripted.requests[1:])
    assert "degrees" in first
    assert "Nowhere is it that hot" in second
    assert first.count("`return_result`") == second.count("`return_result`") == 1


async def test_a_refusal_is_not_a_value() -> None:
    """It isn't requested again."""
    no = Message.assistant("I can't.").replace(finish=FinishReason.REFUSAL)
    with pytest.raises(Refused):
        await Agent(model(no), output=Report).send("Weather?")


async def test_output_per_call_and_back_to_text() -> None:
    """`send(..., output=Type)`; `str` is text."""
    agent = Agent(model(GOOD, GOOD, "[1, 2]"), output_mode="native")
    assert (await agent.send("?", output=Report)).output == BASEL
    assert (await agent.send("?")).output == GOOD
    assert (await agent.send("?", output=list[int])).output == [1, 2]
    typed = Agent(model("Hi."), output=Report)
    assert (await typed.send("?", output=str)).output == "Hi."


async def test_a_hook_may_change_or_reject_the_value() -> None:
    """`before_output` is a custom validator."""

    async def warmer(report: Report, _run: object) -> Report | None:
        if report.degrees < 0:
            msg = "In Kelvin, please."
            raise ToolRetry(msg)
        return Report(report.city, report.degrees + 1)

    cold = '{"city": "Basel", "degrees": -3}'
    agent = Agent(model(cold, GOOD), output=Report, output_mode="native",
                  hooks=Hooks(before_output=warmer))  # fmt: skip
    result = await agent.send("Weather?")
    assert result.output == Report("Basel", 4)
    assert "In Kelvin, please." in result.messages[2].text


async def test_a_users_tool_keeps_that_name() -> None:
    """Ours gets another name."""

    def return_result(city: str) -> str:
        """Something else."""
        return city

    script = model(asks(call("return_result", "a", city="x")),
                   asks(call("return_result_2", "b", city="Basel", degrees=3)))  # fmt: skip
    agent = Agent(script, tools=[return_result], output=Report, output_mode="tool")
    assert (await agent.send("?")).output == BASEL


@pytest.mark.parametrize("mode", ["native", "tool"])
async def test_partial_objects_are_streamed(mode: Mode) -> None:
    """Each is a prefix of the next; the result has the whole."""
    pieces = ['{"city": "Ba', 'sel", "degr', 'ees": 3', "}"]
    events: list[Any] = [ResponseStart()]
    if mode == "native":
        events += [PartStart(0, Text("")), *(PartDelta(0, piece) for piece in pieces)]
    else:
        head = ToolCallDelta(0, "r", "return_result", pieces[0])
        events += [head, *(ToolCallDelta(0, arguments_delta=piece) for piece in pieces[1:])]
    events.append(ResponseEnd())
    stream = Agent(model(events), output=Report, output_mode=mode).stream("Weather?")
    chunks = [chunk async for chunk in stream]
    raw = [chunk.partial_json for chunk in chunks if chunk.partial_json is not UNSET]
    assert raw[0] == {"city": "Ba"}
    assert raw[-1] == {"city": "Basel", "degrees": 3}
    assert [each.partial for each in chunks if each.partial is not UNSET] == [BASEL]
    assert stream.result.output == BASEL


class Forecast(BaseModel):
    """Everything has a default, so that the beginning of an answer is valid."""

    city: Annotated[str, Field(min_length=2)] = "?"
    sky: Literal["clear", "cloudy"] | None = None
    days: list[Report] = []


@pytest.mark.parametrize("mode", ["native", "tool", "two_phase"])
async def test_partial_values_have_the_declared_type(mode: Mode) -> None:
    """In every mode: what is valid of the answer so far, without the element that still grows."""
    text = '{"city":"Basel","sky":"clear","days":[{"city":"Bern","degrees":1}]}'
    pieces = [*text]
    if mode == "tool":
        head = ToolCallDelta(0, "r", "return_result", pieces[0])
        spoken: list[Any] = [head, *(ToolCallDelta(0, arguments_delta=each) for each in pieces[1:])]
    else:
        spoken = [PartStart(0, Text("")), *(PartDelta(0, each) for each in pieces)]
    answer = [ResponseStart(), *spoken, ResponseEnd()]
    script = model("I think.", answer) if mode == "two_phase" else model(answer)
    stream = Agent(script, output=Forecast, output_mode=mode).stream("?")
    partial = [chunk.partial async for chunk in stream if chunk.partial is not UNSET]
    assert {type(each) for each in partial} == {Forecast}
    cities = [each.city for each in partial]
    assert cities[:5] == ["?", "Ba", "Bas", "Base", "Basel"]  # one letter would be too short
    assert {each.sky for each in partial[5:]} == {"clear"}  # never a part of the word
    assert partial[-1] == stream.result.output
    assert len(partial) < 10  # not one for each letter of what is not valid yet


async def test_a_call_in_one_piece_has_a_partial_value_too() -> None:
    """Gemini and Ollama send the arguments of a call at once."""
    stream = Agent(TestModel(output={"city": "Bern"}), output=Forecast, output_mode="tool").stream(
        "?"
    )
    partial = [chunk.partial async for chunk in stream if chunk.partial is not UNSET]
    assert partial == [Forecast(city="Bern")] == [stream.result.output]


async def test_a_long_value_ends_with_a_complete_partial_one() -> None:
    """What was held back for its size comes at the end."""
    text = json.dumps({"city": "x" * 50_000})
    events = [ResponseStart(), PartStart(0, Text("")), *(PartDelta(0, each) for each in text)]
    script = model([*events, ResponseEnd()])
    stream = Agent(script, output=Forecast, output_mode="native").stream("?")
    partial = [chunk.partial async for chunk in stream if chunk.partial is not UNSET]
    assert partial[-1] == stream.result.output
