"""`Agent(thinking=...)`: what each model is sent, what it shows, and what is sent back."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from dragoman import Agent, Message, Thinking
from dragoman.errors import InvalidInputError
from dragoman.model.requests import ThinkingConfig
from tests.agent.loopback import DIALECTS, world
from tests.agent.scripts import asks, call, clock, weather
from tests.agent.spoken import Body, Said
from tests.agent.test_dialects import STREAMS, asked, picture
from tests.agent.vendors import InTurn, encoded, speaking

_FIELDS = ("thinking", "output_config", "reasoning", "reasoning_effort", "think",
           "chat_template_kwargs")  # fmt: skip
OFF = {"thinking": {"type": "disabled"}}
SUMMARY = {"display": "summarized"}


class Row(NamedTuple):
    """A model, and what it is sent for each of `ASKED`."""

    model: str
    dialect: str
    high: Body
    budget: Body
    on: Body
    off: Body


ASKED: dict[str, Any] = {"high": "high", "budget": 4096, "on": True, "off": False, "none": "none"}


def _claude(tokens: int) -> Body:
    return {"thinking": {"type": "enabled", "budget_tokens": tokens, **SUMMARY}}


def _adaptive(effort: str | None = None) -> Body:
    told: Body = {"thinking": {"type": "adaptive", **SUMMARY}}
    return told if effort is None else {**told, "output_config": {"effort": effort}}


def _effort(effort: str) -> Body:
    return {"reasoning_effort": effort}


def _summed(effort: str) -> Body:
    return {"reasoning": {"effort": effort, "summary": "auto"}}


def _switch(*, on: bool, effort: str | None = None) -> Body:
    told: Body = {"thinking": {"type": "enabled" if on else "disabled"}}
    return told if effort is None else {**told, "reasoning_effort": effort}


def _template(*, on: bool, effort: str | None = None) -> Body:
    told: Body = {"chat_template_kwargs": {"enable_thinking": on}}
    return told if effort is None else {**told, "reasoning_effort": effort}


def _gemini(**config: Any) -> Body:
    return {"thinkingConfig": {"includeThoughts": True, **config}}


def _gemini_off(**config: Any) -> Body:
    return {"thinkingConfig": config}


def _router(**config: Any) -> Body:
    return {"reasoning": {"enabled": True, "exclude": False, **config}}


_CHAT, _RESPONSES = "openai-chat", "openai-responses"
ROWS = (
    # W12: models that don't think get no such settings.
    Row("openai:gpt-4.1", _CHAT, {}, {}, {}, {}),
    Row("openai:gpt-4.1", _RESPONSES, {}, {}, {}, {}),
    Row("anthropic:claude-3-5-haiku-latest", "anthropic", {}, {}, {}, {}),
    Row("google:gemini-2.0-flash", "gemini", {}, {}, {}, {}),
    Row("groq:llama-3.3-70b-versatile", _CHAT, {}, {}, {}, {}),
    Row("mistral:magistral-medium-latest", _CHAT, {}, {}, {}, {}),
    Row("xai:grok-4", _CHAT, {}, {}, {}, {}),
    # efforts
    Row("openai:gpt-5", _CHAT, _effort("high"), _effort("low"), _effort("medium"),
        _effort("minimal")),
    Row("openai:gpt-5.1", _CHAT, _effort("high"), _effort("low"), _effort("medium"),
        _effort("none")),
    Row("openai:o3-mini", _CHAT, _effort("high"), _effort("low"), _effort("medium"),
        _effort("low")),
    Row("openai:gpt-5", _RESPONSES, _summed("high"), _summed("low"), _summed("medium"),
        {"reasoning": {"effort": "minimal"}}),
    Row("openai:gpt-5.2", _RESPONSES, _summed("high"), _summed("low"), _summed("medium"),
        {"reasoning": {"effort": "none"}}),
    Row("groq:openai/gpt-oss-120b", _CHAT, _effort("high"), _effort("low"), _effort("medium"),
        _effort("low")),
    Row("groq:qwen/qwen3-32b", _CHAT, {}, {}, {}, _effort("none")),
    Row("mistral:mistral-large-latest", _CHAT, _effort("high"), _effort("high"), _effort("high"),
        _effort("none")),
    Row("xai:grok-3-mini", _CHAT, _effort("high"), _effort("low"), _effort("high"),
        _effort("none")),
    # W59: a number of tokens
    Row("anthropic:claude-3-7-sonnet-latest", "anthropic", _claude(16384), _claude(4096),
        _claude(8192), OFF),
    Row("anthropic:claude-sonnet-4-5", "anthropic", _claude(16384), _claude(4096), _claude(8192),
        OFF),
    Row("anthropic:claude-opus-4-5", "anthropic",
        {**_claude(16384), "output_config": {"effort": "high"}}, _claude(4096), _claude(8192), OFF),
    Row("google:gemini-2.5-flash", "gemini", _gemini(thinkingBudget=16384),
        _gemini(thinkingBudget=4096), _gemini(thinkingBudget=8192), _gemini_off(thinkingBudget=0)),
    Row("google:gemini-2.5-pro", "gemini", _gemini(thinkingBudget=16384),
        _gemini(thinkingBudget=4096), _gemini(thinkingBudget=8192),
        _gemini_off(thinkingBudget=128)),
    # adaptive
    Row("anthropic:claude-opus-4-6", "anthropic", _adaptive("high"), _claude(4096), _adaptive(),
        OFF),
    Row("anthropic:claude-opus-4-8", "anthropic", _adaptive("high"), _adaptive("low"), _adaptive(),
        OFF),
    # levels
    Row("google:gemini-3-pro-preview", "gemini", _gemini(thinkingLevel="HIGH"),
        _gemini(thinkingLevel="LOW"), _gemini(), _gemini_off(thinkingLevel="LOW")),
    Row("google:gemini-3-flash-preview", "gemini", _gemini(thinkingLevel="HIGH"),
        _gemini(thinkingLevel="LOW"), _gemini(), _gemini_off(thinkingLevel="LOW")),
    # switches
    Row("deepseek:deepseek-reasoner", _CHAT, _switch(on=True, effort="high"),
        _switch(on=True, effort="low"), _switch(on=True), _switch(on=False)),
    Row("vllm:Qwen/Qwen3-8B", _CHAT, _template(on=True, effort="high"),
        _template(on=True, effort="low"), _template(on=True), _template(on=False)),
    Row("ollama:qwen3", "ollama", {"think": "high"}, {"think": "low"}, {"think": True},
        {"think": False}),
    Row("openrouter:anthropic/claude-sonnet-4.5", _CHAT, _router(effort="high"),
        _router(max_tokens=4096), _router(), {"reasoning": {"enabled": False}}),
)  # fmt: skip


def _told(body: Body) -> Body:
    found = {key: body[key] for key in _FIELDS if key in body}
    config = body.get("generationConfig", {})
    return found | ({"thinkingConfig": config["thinkingConfig"]} if "thinkingConfig" in config
                    else {})  # fmt: skip


@pytest.mark.parametrize("asked_for", ASKED)
@pytest.mark.parametrize("row", ROWS, ids=[f"{row.model}@{row.dialect}" for row in ROWS])
async def test_each_model_gets_thinking_in_its_own_form(row: Row, asked_for: str) -> None:
    """Effort, budget, on and off; and nothing that its provider would reject."""
    answer = encoded(row.dialect, Message.assistant("Hi."))
    vendor = InTurn(row.dialect, answer)
    async with speaking(vendor, row.model) as client:
        agent = Agent(client, thinking=ASKED[asked_for], max_tokens=30_000)
        await agent.send("Hello")
    assert vendor.faults == []
    expected = row.off if asked_for == "none" else getattr(row, asked_for)
    told = _told(vendor.raw[0])
    if asked_for == "none" and "openrouter" in row.model:
        expected = {"reasoning": {**expected["reasoning"], "effort": "none"}}
    assert told == expected


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.model}@{row.dialect}" for row in ROWS])
async def test_by_default_nothing_is_sent(row: Row) -> None:
    """The provider's default applies; a single call may set it."""
    answer = encoded(row.dialect, Message.assistant("Hi."))
    vendor = InTurn(row.dialect, answer, answer, answer)
    async with speaking(vendor, row.model) as client:
        agent = Agent(client, max_tokens=30_000)
        await agent.send("Hello")
        await agent.send("Hello", thinking="high")
        await agent.send("Hello")
    first, second, third = map(_told, vendor.raw)
    assert (first, second, third) == ({}, row.high, {})


@pytest.mark.parametrize(
    ("model", "dialect", "fields"),
    [
        ("anthropic:claude-sonnet-4-5", "anthropic",
         {"thinking": {"type": "enabled", "budget_tokens": 2048, "display": "omitted"}}),
        ("google:gemini-2.5-flash", "gemini",
         {"thinkingConfig": {"includeThoughts": False, "thinkingBudget": 2048}}),
        ("openai:gpt-5", _RESPONSES, {"reasoning": {"effort": "low"}}),
        ("openrouter:anthropic/claude-sonnet-4.5", _CHAT,
         {"reasoning": {"effort": "low", "enabled": True, "exclude": True}}),
    ],
)  # fmt: skip
async def test_hidden_thinking(model: str, dialect: str, fields: Body) -> None:
    """`visible=False`, if the provider supports it."""
    vendor = InTurn(dialect, encoded(dialect, Message.assistant("Hi.")))
    config = ThinkingConfig(enabled=True, effort="low", visible=False)
    async with speaking(vendor, model) as client:
        await Agent(client, thinking=config, max_tokens=9000).send("Hello")
    assert vendor.faults == []
    assert _told(vendor.raw[0]) == fields


async def test_max_tokens_that_leave_no_room_to_think() -> None:
    """W59: a budget is at least 1024 and less than `max_tokens`; otherwise there is no thinking."""
    vendor = InTurn("anthropic", encoded("anthropic", Message.assistant("Hi.")))
    async with speaking(vendor, "anthropic:claude-sonnet-4-5") as client:
        await Agent(client, thinking="low", max_tokens=900).send("Hello")
    assert vendor.faults == []
    assert _told(vendor.raw[0]) == OFF


async def test_a_forced_tool_call_disables_thinking() -> None:
    """W58: a thinking Claude can't be forced; after the call, it may think again."""
    first = encoded("anthropic", asks(call("weather", "toolu_1", city="Basel")))
    vendor = InTurn("anthropic", first, *[encoded("anthropic", Message.assistant("Hi."))] * 2)
    async with speaking(vendor, "anthropic:claude-sonnet-4-5") as client:
        agent = Agent(client, tools=[weather, clock], tool_choice="required", thinking="low",
                      max_tokens=9000)  # fmt: skip
        result = await agent.send("Hello")
        await agent.send("And?", history=result.messages, tool_choice="auto")
    assert vendor.faults == []
    # W51: the turn began without thinking, so it ends without.
    assert [_told(body) for body in vendor.raw] == [OFF, OFF, _claude(2048)]


@pytest.mark.parametrize("wrong", [1.5, ["high"], {"effort": "high"}, object()])
def test_invalid_thinking_settings(wrong: Any) -> None:
    """They are rejected before anything is sent."""
    with pytest.raises(InvalidInputError):
        Agent("openai:gpt-5", thinking=wrong)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_thinking_is_in_the_metadata_of_chunks(dialect: str) -> None:
    """In pieces that add up, and on the messages; never in the output."""
    async with world(dialect) as places:
        said = places.begin(0)
        agent = Agent(places.clients[dialect], tools=[weather, clock], thinking="low",
                      max_tokens=9000)  # fmt: skip
        stream = agent.stream(said.question, picture(said))
        chunks = [chunk async for chunk in stream]
    pieces = [chunk.metadata["thinking"] for chunk in chunks if "thinking" in chunk.metadata]
    assert len(pieces) > 3
    assert "".join(pieces) == stream.result.thinking == f"{said.thought}\n{said.afterthought}"
    assert "".join(chunk.output for chunk in chunks) == f"{said.text}\n{said.answer}"
    answers = [m for m in stream.result.messages if m.role.value == "assistant"]
    assert [m.thinking for m in answers] == [said.thought, said.afterthought]
    assert all(isinstance(m.parts[0], Thinking) for m in answers)
    assert places.faults == []


BACK = {  # whether a provider is sent its own thinking again, and that of each other
    "anthropic": ("own",), "gemini": ("own",), "ollama": ("own",), "openai-chat": ("own",),
    "openai-responses": ("own",), "deepseek": ("own", "others"), "groq": ("own",), "openai": (),
}  # fmt: skip


@STREAMS
@pytest.mark.parametrize("name", BACK)
async def test_thinking_is_only_sent_back_where_allowed(name: str, streams: bool) -> None:
    """To its provider if it accepts any, and to others that accept foreign ones (C2, W54, W110)."""
    other = "gemini" if name != "gemini" else "anthropic"
    async with world(name, other) as places:
        agent = Agent(places.clients[name], tools=[weather, clock], max_tokens=9000,
                      links_responses=False)  # fmt: skip
        history: Any = None
        for turn, place in enumerate((name, other, name)):
            said = places.begin(turn)
            here = agent.with_model(places.clients[place])
            result = await asked(
                here, said.question, picture(said), history=history, streams=streams
            )
            history = result.messages if history is None else history + result.messages
    assert places.faults == []
    last = str(places.asked[-1][1])
    own, others = Said(0), Said(1)
    shown = {"own": own.thought in last, "others": others.thought in last}
    assert tuple(key for key, value in shown.items() if value) == BACK[name]
