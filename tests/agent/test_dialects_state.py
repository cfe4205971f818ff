"""OpenAI's Responses: requests that link to the previous answer, and what prevents that."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import (
    Agent,
    ChatHistory,
    ChatHistoryConfig,
    Message,
    Messages,
    Role,
    SessionIdentity,
    Text,
    tool,
)
from dragoman.errors import InvalidRequest
from dragoman.model.requests import State
from tests.agent.loopback import World, world
from tests.agent.scripts import clock, weather
from tests.agent.spoken import Body
from tests.agent.test_dialects import STREAMS, asked, picture

HERE = "openai-responses"


def agent_at(places: World, name: str = HERE, **settings: Any) -> Agent:
    """The agent, with a given provider."""
    return Agent(
        places.clients[name],
        tools=[weather, clock],
        system="Be brief.",
        max_tokens=9000,
        **settings,
    )


async def turned(
    places: World, agent: Agent, turn: int, history: Any = None, *, streams: bool = False
) -> Messages:
    """A turn, and its new messages."""
    said = places.begin(turn)
    return (
        await asked(agent, said.question, picture(said), history=history, streams=streams)
    ).messages


def kinds(body: Body) -> list[str]:
    """The types of the items of a request's input."""
    return [item.get("type", item.get("role")) for item in body["input"]]


@STREAMS
async def test_the_second_request_has_only_the_results(streams: bool) -> None:
    """With the answer's id; instructions and tools are sent again (W36)."""
    async with world(HERE) as places:
        await turned(places, agent_at(places), 0, streams=streams)
    first, second = places.raw
    assert "previous_response_id" not in first
    assert kinds(first) == ["user"]
    assert second["previous_response_id"] == "resp_0a"
    assert kinds(second) == ["function_call_output", "function_call_output"]
    assert [item["call_id"] for item in second["input"]] == ["call_0aweather", "call_0aclock"]
    assert second["instructions"] == "Be brief."
    assert [tool["name"] for tool in second["tools"]] == ["weather", "clock"]
    assert places.faults == []


@STREAMS
async def test_the_next_turn_links_to_the_last_answer(streams: bool) -> None:
    """Only the new question is sent; another agent doesn't know the answer and sends everything."""
    async with world(HERE) as places:
        agent = agent_at(places)
        history = await turned(places, agent, 0, streams=streams)
        history += await turned(places, agent, 1, history, streams=streams)
        await turned(places, agent_at(places), 2, history, streams=streams)
    bodies = places.raw
    assert [body.get("previous_response_id") for body in bodies] == [
        None, "resp_0a", "resp_0b", "resp_1a", None, "resp_2a"
    ]  # fmt: skip
    assert kinds(bodies[2]) == ["user"]
    assert len(kinds(bodies[4])) == 19
    assert places.faults == []


def _edited(history: Messages) -> Messages:
    return Messages.of([Message.user("Something else."), *history[1:]])


def _result_edited(history: Messages) -> Messages:
    told = history[2]
    first, second = told.tool_results
    other = told.replace(parts=(first.replace(content=(Text("sun"),)), second))
    return Messages.of([*history[:2], other, *history[3:]])


def _truncated(history: Messages) -> Messages:
    return Messages.of([Message.user("Where were we?"), history[-1]])


def _grown(history: Messages) -> Messages:
    return Messages.of([Message.system("Be kind."), *history])


@STREAMS
@pytest.mark.parametrize("change", [_edited, _result_edited, _truncated, _grown])
async def test_a_changed_history_is_sent_in_full(change: Any, streams: bool) -> None:
    """The provider's stored state no longer matches it."""
    async with world(HERE) as places:
        agent = agent_at(places)
        history = change(await turned(places, agent, 0, streams=streams))
        places.said.clear()
        places.pixels.clear()
        places.seals.clear()
        await turned(places, agent, 1, history, streams=streams)
    third, fourth = places.raw[2:]
    assert "previous_response_id" not in third
    assert len(third["input"]) > len(history)
    assert fourth["previous_response_id"] == "resp_1a"
    assert places.faults == []


async def test_a_truncated_history_is_sent_in_full() -> None:
    """When the history drops the first turns, the link is dropped, too."""
    async with world(HERE) as places:
        agent = agent_at(places)
        history = await ChatHistory.open(
            SessionIdentity(chat="one"), "memory:", ChatHistoryConfig(context_window=2400)
        )
        try:
            for turn in range(8):
                said = places.begin(turn)
                await agent.send(said.question + " word" * 120, history=history)
                places.said.clear()
                places.pixels.clear()
                places.seals.clear()
        finally:
            await history.close()
    linked = [body.get("previous_response_id") for body in places.raw[::2]]
    assert linked[1] == "resp_0b"
    assert linked[-1] is None
    opening = places.raw[-2]["input"][0]
    assert (opening["role"], "Question 0" in str(opening)) == ("user", False)


@STREAMS
async def test_a_switch_of_provider_and_back(streams: bool) -> None:
    """Another provider gets everything; back again, one full request is followed by linked ones."""
    async with world(HERE, "anthropic") as places:
        agent = agent_at(places)
        history = await turned(places, agent, 0, streams=streams)
        elsewhere = agent.with_model(places.clients["anthropic"])
        history += await turned(places, elsewhere, 1, history, streams=streams)
        await turned(places, agent, 2, history, streams=streams)
    assert [body.get("previous_response_id") for body in places.raw] == [
        None, "resp_0a", None, None, None, "resp_2a"
    ]  # fmt: skip
    assert places.faults == []


@STREAMS
async def test_an_answer_that_the_provider_forgot(streams: bool) -> None:
    """After `previous_response_not_found`, the full request follows at once."""
    async with world(HERE) as places:
        agent = agent_at(places)
        history = await turned(places, agent, 0, streams=streams)
        places.kept.clear()
        new = await turned(places, agent, 1, history, streams=streams)
    ids = [body.get("previous_response_id") for body in places.raw]
    assert ids == [None, "resp_0a", "resp_0b", None, "resp_1a"]
    assert len(places.raw[3]["input"]) == 10
    assert [m.role for m in new] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    assert places.faults == []


@STREAMS
async def test_an_answer_forgotten_between_calls_and_results(streams: bool) -> None:
    """The full request follows, and the tools are not run again."""
    async with world(HERE) as places:
        runs: list[str] = []

        def look(city: str) -> str:
            """Look."""
            runs.append(city)
            places.kept.clear()
            return f"rain in {city}"

        tools = [tool(name=name)(look) for name in ("weather", "clock")]
        said = places.begin(0)
        agent = Agent(places.clients[HERE], tools=tools, max_tokens=9000)
        result = await asked(agent, said.question, picture(said), streams=streams)
    assert [body.get("previous_response_id") for body in places.raw] == [None, "resp_0a", None]
    assert sorted(runs) == ["Basel 0", "Bern 0"]
    assert result.text == f"{said.text}\n{said.answer}"
    assert places.faults == []


@STREAMS
@pytest.mark.parametrize(
    "settings",
    [
        {"state": State(store=False)},
        {"extras": {HERE: {"store": False}}},
        {"links_responses": False},
    ],
    ids=["store", "extras", "links"],
)
async def test_without_stored_state_everything_is_sent(
    settings: dict[str, Any], streams: bool
) -> None:
    """With `store=False` there is no link, and sealed state is sent (W25, W26)."""
    async with world(HERE) as places:
        agent = agent_at(places, **settings)
        history = await turned(places, agent, 0, streams=streams)
        await turned(places, agent, 1, history, streams=streams)
    assert all("previous_response_id" not in body for body in places.raw)
    assert [len(body["input"]) for body in places.raw] == [1, 7, 10, 16]
    if "links_responses" not in settings:
        assert all(body["store"] is False for body in places.raw)
        assert all("reasoning.encrypted_content" in body["include"] for body in places.raw)
    assert places.faults == []


async def test_other_errors_are_not_taken_for_a_forgotten_answer() -> None:
    """An invalid request is not sent twice."""
    async with world(HERE) as places:
        agent = agent_at(places)
        history = await turned(places, agent, 0)
        error = {"message": "no", "type": "invalid_request_error", "param": "tools[0]"}
        places.refusal = {"error": error}
        with pytest.raises(InvalidRequest):
            await agent.send("And now?", history=history)
    assert len(places.raw) == 3


@STREAMS
async def test_a_provider_that_stores_nothing(streams: bool) -> None:
    """Zero data retention: everything is sent, without ids that it can't resolve."""
    async with world(HERE) as places:
        places.keeps_nothing = True
        agent = agent_at(places)
        history = await turned(places, agent, 0, streams=streams)
        await turned(places, agent, 1, history, streams=streams)
    whole = [body for body in places.raw if "reasoning" not in kinds(body)]
    assert [kinds(body) for body in whole[-1:]] == [["user", *_SAID, "user", *_SAID[:5]]]
    assert all(item.get("id") is None for item in whole[-1]["input"])


_SAID = ["assistant", "function_call", "function_call", "function_call_output",
         "function_call_output", "assistant"]  # fmt: skip
