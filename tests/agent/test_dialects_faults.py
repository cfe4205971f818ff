"""Faults and continuations within a run, in each provider's wire format."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dragoman import Agent, Message, Role, tool
from dragoman.errors import InvalidInputError, ProviderError, ServerError, StreamInterrupted
from dragoman.model import ToolChoice
from dragoman.model.requests import Request
from dragoman.transport import FallbackModel
from tests.agent.loopback import DIALECTS, PLACES
from tests.agent.scripts import call, clock, weather
from tests.agent.spoken import Body
from tests.agent.test_dialects import STREAMS, asked
from tests.agent.vendors import InTurn, Obedient, encoded, speaking
from tests.transport import test_embedding as embedding
from tests.transport import vendors
from tests.transport.servers import Step, plain, streamed
from tests.transport.test_failed_generations import FAULT, WRITTEN, _chunk, _error_event

# --- a tool that must be called


@STREAMS
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "choice",
    ["required", "weather", ToolChoice("allowed", ("weather", "clock"), is_required=True)],
    ids=["required", "named", "allowed"],
)  # fmt: skip
async def test_a_required_call_is_required_once(choice: Any, dialect: str, streams: bool) -> None:
    """The first request forces a call; after a round, the model may answer."""
    vendor = Obedient(dialect)
    async with speaking(vendor, PLACES[dialect].model) as client:
        agent = Agent(client, tools=[weather, clock], tool_choice=choice, max_tokens=900)
        result = await asked(agent, "Weather?", streams=streams)
    assert vendor.faults == []
    assert result.text == "One moment.\nIt is three degrees."
    first, second = vendor.requests
    assert not _forces(second)
    if dialect != "ollama":  # which can't be forced
        assert _forces(first)


def _forces(request: Request) -> bool:
    choice = request.tool_choice
    return choice is not None and (choice.mode in {"required", "named"} or choice.is_required)


# --- Groq: a call that it could not parse (W112)


def _broken(kind: str) -> Sequence[Step]:
    if kind == "refused":
        return plain({"error": FAULT}, 400)
    if kind == "begins":
        return streamed(_error_event())
    return streamed(_chunk(role="assistant", reasoning="Hm."), _error_event())


def _rain(dialect: str = "openai-chat") -> Body:
    return encoded(dialect, Message.assistant("Rain."), 9)


@pytest.mark.parametrize(
    ("kind", "streams"),
    [("refused", False), ("refused", True), ("begins", True), ("breaks off", True)],
)
async def test_a_call_that_groq_could_not_parse(kind: str, streams: bool) -> None:
    """The request is repeated with the model's output, and the second answer counts."""
    vendor = InTurn("openai-chat", _broken(kind), _rain())
    async with speaking(vendor, "groq:openai/gpt-oss-120b") as client:
        result = await asked(Agent(client, tools=[weather]), "Weather?", streams=streams)
    assert vendor.faults == []
    assert [m.role.value for m in result.messages] == ["user", "assistant", "user", "assistant"]
    assert result.messages[1].text == WRITTEN
    assert result.output.endswith("Rain.")
    sent = vendor.requests[1].messages
    assert [m.text for m in sent][1] == WRITTEN
    assert "call it again" in sent[2].text


@STREAMS
async def test_a_model_that_repeats_the_mistake(streams: bool) -> None:
    """After two more attempts the error is raised."""
    vendor = InTurn("openai-chat", *[_broken("breaks off" if streams else "refused")] * 4)
    async with speaking(vendor, "groq:openai/gpt-oss-120b") as client:
        with pytest.raises((ProviderError, StreamInterrupted)):
            await asked(Agent(client, tools=[weather]), "Weather?", streams=streams)
    assert len(vendor.requests) == 3


# --- Anthropic: a turn that is paused


def _claude(content: list[Body], stop: str, number: int) -> Body:
    return {
        "id": f"msg_{number}", "type": "message", "role": "assistant",
        "model": "claude-sonnet-4-5-20250929", "content": content, "stop_reason": stop,
        "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 7},
    }  # fmt: skip


PAUSED: list[Body] = [
    {"type": "text", "text": "Let me search."},
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
     "input": {"query": "rain"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [
        {"type": "web_search_result", "url": "https://a.example", "title": "A",
         "encrypted_content": "c2VhbGVk", "page_age": None}]},
]  # fmt: skip


@STREAMS
async def test_a_paused_turn_is_continued(streams: bool) -> None:
    """The paused message is sent back unchanged, without a message in between."""
    rest: list[Body] = [{"type": "text", "text": " It rains."}]
    vendor = InTurn("anthropic", _claude(PAUSED, "pause_turn", 1), _claude(rest, "end_turn", 2))
    async with speaking(vendor, "anthropic:claude-sonnet-4-5") as client:
        agent = Agent(client, tools=[weather], max_tokens=900)
        result = await asked(agent, "Weather?", streams=streams)
    assert vendor.faults == []
    asked_again = vendor.raw[1]["messages"]
    assert [m["role"] for m in asked_again] == ["user", "assistant"]
    assert asked_again[1]["content"] == PAUSED
    assert result.text == "Let me search. It rains."
    assert [m.role.value for m in result.messages] == ["user", "assistant", "assistant"]


# --- Gemini: a malformed call


MALFORMED: Body = {
    "candidates": [{"index": 0, "content": {"role": "model"},
                    "finishReason": "MALFORMED_FUNCTION_CALL",
                    "finishMessage": "Malformed function call: print(default_api.weather("}],
    "usageMetadata": {"promptTokenCount": 9, "totalTokenCount": 9},
    "modelVersion": "gemini-2.5-flash", "responseId": "g1",
}  # fmt: skip


@STREAMS
async def test_a_malformed_call_of_gemini(streams: bool) -> None:
    """The request is repeated with the reason; no empty message stays in the conversation."""
    head = streamed(b"data: " + json.dumps(MALFORMED).encode() + b"\n\n")
    vendor = InTurn("gemini", head if streams else MALFORMED, _rain("gemini"))
    async with speaking(vendor, "google:gemini-2.5-flash") as client:
        agent = Agent(client, tools=[weather])
        result = await asked(agent, "Weather?", streams=streams)
    assert vendor.faults == []
    assert [m.role.value for m in result.messages] == ["user", "user", "assistant"]
    assert result.output == "Rain."
    assert "call it again" in str(vendor.raw[1]["contents"][-1])


# --- fallbacks


def _overloaded() -> Sequence[Step]:
    return plain({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, 529)


CALLS = Message.assistant("One moment.", tool_calls=[
    call("weather", "toolu_1", city="Basel"), call("clock", "toolu_2", city="Bern")])  # fmt: skip


@STREAMS
@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name != "anthropic"])
async def test_another_model_answers_in_the_second_step(dialect: str, streams: bool) -> None:
    """It gets the first model's calls and results; nothing is sent or run twice."""
    runs: list[str] = []

    @tool(name="weather")
    def counted(city: str) -> str:
        """Count."""
        runs.append(city)
        return f"rain in {city}"

    first = InTurn("anthropic", encoded("anthropic", CALLS), _overloaded())
    second = InTurn(dialect, encoded(dialect, Message.assistant("Rain."), 9))
    async with (
        speaking(first, "anthropic:claude-sonnet-4-5") as one,
        speaking(second, PLACES[dialect].model) as other,
    ):
        agent = Agent(FallbackModel(one, other), tools=[counted, clock], max_tokens=900)
        result = await asked(agent, "Weather?", streams=streams)
    assert (first.faults, second.faults, runs) == ([], [], ["Basel"])
    assert [m.role.value for m in result.messages] == ["user", "assistant", "tool", "assistant"]
    assert result.text == "One moment.\nRain."
    (whole,) = second.requests
    assert [m.text for m in whole.messages if m.role is Role.USER and m.text] == ["Weather?"]
    assert sum(len(m.tool_results) for m in whole.messages) == 2


@STREAMS
@pytest.mark.parametrize("error", [ServerError("busy"), ConnectionError("cut"), ValueError("no")])
async def test_a_failing_tool_causes_no_fallback(error: Exception, streams: bool) -> None:
    """Even an error that looks like a provider's goes to the same model."""

    @tool(name="weather")
    def failing(city: str) -> str:  # noqa: ARG001 - the model gives one
        """Fail."""
        raise error

    answers = [encoded("anthropic", CALLS), encoded("anthropic", Message.assistant("Sorry."), 2)]
    first, second = InTurn("anthropic", *answers), InTurn("openai-chat")
    async with (
        speaking(first, "anthropic:claude-sonnet-4-5") as one,
        speaking(second, "openai:gpt-4.1") as other,
    ):
        agent = Agent(FallbackModel(one, other), tools=[failing, clock], max_tokens=900)
        result = await asked(agent, "Weather?", streams=streams)
    assert result.text == "One moment.\nSorry."
    assert (first.faults, second.requests) == ([], [])
    failed, fine = first.requests[1].messages[-1].tool_results
    assert (failed.is_error, fine.is_error) == (True, False)


# --- embeddings


@pytest.mark.parametrize(
    ("model", "answer", "base"),
    [
        ("openai:e", embedding.openai, "/v1"),
        ("google:e", embedding.gemini, ""),
        ("ollama:e", embedding.ollama, ""),
    ],
)
async def test_embeddings_of_an_agents_model(
    model: str, answer: Callable[[vendors.Came], vendors.Goes], base: str
) -> None:
    """One for a query, one for each document, in order."""
    async with (
        vendors.serving(answer) as vendor,
        embedding.client(vendor, model, base) as client,
    ):
        agent = Agent(client)
        assert (await agent.embed_query("four")).vector == (4.0, 0.5)
        found = await agent.embed_documents(text for text in ("a", "bbb"))
        assert found.vectors == ((1.0, 0.5), (3.0, 0.5))
        for wrong in ("a text", 5, [5]):
            with pytest.raises(InvalidInputError):
                await agent.embed_documents(wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidInputError):
            await agent.embed_query(["a"])  # type: ignore[arg-type]
    assert len(vendor.came) == 2
