"""One conversation through all dialects, a turn in each, over real connections.

Every turn has an image, thinking that its provider seals, two parallel calls, and an answer. The
servers validate each request: see `tests/agent/loopback.py`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import pytest

from dragoman import Agent, Image, Message, Messages, Role, ToolDefinition
from dragoman.agent.results import Result
from tests.agent.loopback import DIALECTS, PLACES, World, world
from tests.agent.scripts import clock, weather
from tests.agent.spoken import Said

Order = Sequence[str]
_SEEDED = random.Random(9)
ROTATIONS: tuple[Order, ...] = tuple(
    DIALECTS[start:] + DIALECTS[:start] for start in range(len(DIALECTS))
)
PERMUTATIONS: tuple[Order, ...] = tuple(
    tuple(_SEEDED.sample(DIALECTS, len(DIALECTS))) * 2 for _ in range(4)
)
HOSTS: tuple[Order, ...] = tuple(tuple(_SEEDED.sample([*PLACES], len(PLACES))) for _ in range(3))
STREAMS = pytest.mark.parametrize("streams", [False, True], ids=["plain", "streamed"])


async def asked(agent: Agent, *content: Any, streams: bool, **options: Any) -> Result[Any]:
    """A result, by `send` or by `stream`."""
    if streams:
        return await agent.stream(*content, **options).collect()
    found: Result[Any] = await agent.send(*content, **options)
    return found


def picture(said: Said) -> Image:
    """The image of a turn."""
    return Image.from_base64(said.pixel, "image/png")


async def talked(places: World, order: Order, agent: Agent, *, streams: bool) -> Messages:
    """A conversation with a turn at each provider; each text is in it once."""
    history = Messages()
    for turn, name in enumerate(order):
        said = places.begin(turn)
        here = agent.with_model(places.clients[name])
        result = await asked(here, said.question, picture(said), history=history, streams=streams)
        assert result.text == f"{said.text}\n{said.answer}"
        assert [m.role.value for m in result.messages] == ["user", "assistant", "tool", "assistant"]
        history += result.messages
    return history


def ways() -> Iterator[Any]:
    """Each order, whole and linked, plain and streamed."""
    modes = tuple(product((False, True), repeat=2))
    for order in ROTATIONS + PERMUTATIONS:
        for links, streams in modes:
            names = *order, "linked" if links else "whole", "streamed" if streams else "plain"
            yield pytest.param(order, links, streams, id="-".join(names))


@pytest.mark.parametrize(("order", "links", "streams"), [*ways()])
async def test_a_conversation_through_all_dialects(
    order: Order, links: bool, streams: bool
) -> None:
    """Each model gets the whole conversation; sealed state goes only to the model it is from."""
    names = tuple(dict.fromkeys(order))
    async with world(*names) as places:
        agent = Agent(
            places.clients[order[0]], tools=[weather, clock], thinking="low", max_tokens=9000,
            links_responses=links,
        )  # fmt: skip
        history = await talked(places, order, agent, streams=streams)
    assert places.faults == []
    assert len(places.asked) == 2 * len(order)
    assert places.linked == (order.count("openai-responses") if links else 0)
    assert [m.thinking for m in history if m.thinking] == [
        thought for turn in range(len(order))
        for thought in (Said(turn).thought, Said(turn).afterthought)
    ]  # fmt: skip


@STREAMS
@pytest.mark.parametrize("order", HOSTS, ids="-".join)
async def test_a_conversation_through_all_hosts(order: Order, streams: bool) -> None:
    """The same with several hosts or models of one dialect."""
    async with world(*order) as places:
        agent = Agent(places.clients[order[0]], tools=[weather, clock], max_tokens=9000)
        await talked(places, [*order, *order[:3]], agent, streams=streams)
    assert places.faults == []


CALLED = tuple(
    ToolDefinition(name, "The caller runs it.", {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
    for name in ("weather", "clock")
)  # fmt: skip
PAIRS = _SEEDED.sample(
    [(first, second) for first in PLACES for second in PLACES if first != second], 15
)


@STREAMS
@pytest.mark.parametrize("thinking", [None, "low"])
async def test_switching_models_between_calls_and_results(
    thinking: str | None, streams: bool
) -> None:
    """Calls are made by one provider, results go to another: many pairs in one conversation."""
    async with world(*PLACES) as places:
        agent = Agent(
            places.clients["gemini"], tools=CALLED, thinking=thinking, max_tokens=9000,
            links_responses=False,
        )  # fmt: skip
        history = Messages()
        for turn, (first, second) in enumerate(PAIRS):
            said = places.begin(turn)
            here, there = (agent.with_model(places.clients[name]) for name in (first, second))
            begun = await asked(
                here, said.question, picture(said), history=history, streams=streams
            )
            assert [call.name for call in begun.deferred] == ["weather", "clock"]
            history += begun.messages
            results = {call.id: f"{call.name} of {turn}" for call in begun.deferred}
            places.said += results.values()
            ended = await asked(there, history=history, results=results, streams=streams)
            assert ended.text == said.answer
            assert [m.role for m in ended.messages] == [Role.TOOL, Role.ASSISTANT]
            history += ended.messages
    assert places.faults == []


async def test_links_survive_a_detour() -> None:
    """Messages of another provider in between are sent in full, then links are used again."""
    order = ("openai-responses", "anthropic", "openai-responses", "openai-responses")
    async with world("openai-responses", "anthropic") as places:
        agent = Agent(places.clients["anthropic"], tools=[weather, clock], max_tokens=9000)
        await talked(places, order, agent, streams=False)
    assert places.faults == []
    assert places.linked == 4  # a round in each of three turns, and the turn after one of its own


@STREAMS
async def test_a_reloaded_conversation(streams: bool) -> None:
    """To JSON and back in mid-conversation, with sealed state."""
    async with world() as places:
        agent = Agent(places.clients["gemini"], tools=[weather, clock], max_tokens=9000)
        history = Messages()
        for turn, name in enumerate(DIALECTS * 2):
            said = places.begin(turn)
            here = agent.with_model(places.clients[name])
            result = await asked(
                here, said.question, picture(said), history=history, streams=streams
            )
            history += result.messages
            history = Messages.of([Message.from_json(m.to_json()) for m in history])
    assert places.faults == []
