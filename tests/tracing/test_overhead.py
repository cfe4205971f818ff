"""What tracing does not do: nothing per event that came with others, nothing for no reader."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any

import pytest
from opentelemetry import context, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased

from benchmarks.bytecodes import bytecodes
from dragoman import Agent
from dragoman.agent import Hooks
from dragoman.agent.events import TextDelta
from dragoman.providers.prices import Prices
from dragoman.tracing import current, spans
from dragoman.transport import Client, FallbackModel, Retries
from tests.cli.loopback import Goes, Vendor, said, serving, streamed
from tests.tracing.test_tracing import itself, named, parent


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What is exported."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    yield exporter
    provider.shutdown()


def _client(vendor: Vendor) -> Client:
    return Client("openai:gpt-5", base_url=f"{vendor.url}/v1", dialect="openai-chat")


def _at_once(*words: str) -> Goes:
    """A stream whose events arrive together."""
    return Goes(pieces=[b"".join(streamed(*words).pieces or ())])


async def _attached(words: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often a context is attached while a stream of so many words is read."""
    count = 0
    api = current._api()

    def attach(given: Any) -> Any:
        nonlocal count
        count += 1
        return context.attach(given)

    monkeypatch.setattr(current, "_api", lambda: api._replace(attach=attach))
    with serving(_at_once(*[f"word{n} " for n in range(words)])) as vendor:
        async with _client(vendor) as client, Agent(client).stream("Hi") as stream:
            pieces = [each async for each in stream.events() if isinstance(each, TextDelta)]
    assert len(pieces) == words
    return count


@pytest.mark.usefixtures("exported")
async def test_events_that_arrive_together_cost_one_change_of_context(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two hundred events that arrive at once change the context no more often than two do."""
    few = await _attached(2, monkeypatch)
    assert await _attached(200, monkeypatch) <= few + 4  # the system may split the piece


@pytest.mark.parametrize("hooked", [False, True])
async def test_what_the_consumer_does_between_events_is_not_part_of_the_run(
    exported: InMemorySpanExporter, *, hooked: bool
) -> None:
    """Also for events that arrive together; a hook runs inside the run."""
    tracer = trace.get_tracer("ours")

    def told(event: object, _run: object) -> None:
        if isinstance(event, TextDelta):
            tracer.start_span("hook").end()

    hooks = Hooks(on_event=told) if hooked else Hooks()
    with serving(_at_once("a", "b", "c")) as vendor:
        async with _client(vendor) as client, Agent(client, hooks=hooks).stream("Hi") as stream:
            async for event in stream.events():
                if isinstance(event, TextDelta):
                    tracer.start_span("consumer").end()
    found = named(exported)
    assert [parent(span) for span in found["consumer"]] == [None] * 3
    run = itself(found["invoke_agent"][0])[1]
    assert [parent(span) for span in found.get("hook", ())] == [run] * (3 * hooked)


async def test_a_trace_that_is_sampled_out_is_not_described(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither settings nor outcome nor cost are gathered where nobody will read them."""
    provider = TracerProvider(sampler=ParentBased(ALWAYS_OFF))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)

    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")

    def gathered(*_: object) -> Any:
        pytest.fail("gathered for nobody")

    for name in ("request_attributes", "response_attributes", "usage_attributes"):
        monkeypatch.setattr(spans, name, gathered)
    with serving(said("In Mostar.")) as vendor:
        async with _client(vendor) as client:
            monkeypatch.setattr(client, "_cost", gathered)
            assert (await Agent(client).send("Where?")).text == "In Mostar."
    provider.shutdown()


async def test_events_of_a_fallback_arrive_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that stands in for another one passes its events on as they came."""
    provider = TracerProvider()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    words = [f"word{n} " for n in range(200)]
    broken = Client("openai:gpt-5", base_url="http://127.0.0.1:9", retries=Retries(attempts=1))
    with serving(_at_once(*words)) as vendor:
        async with broken, _client(vendor) as whole:
            stream = FallbackModel(broken, whole).stream("Hi")
            aiter(stream)
            batches: list[int] = []
            while events := await stream.batch():
                batches.append(len(events))
    assert sum(batches) >= 200
    assert len(batches) <= 6  # the system may split the piece
    assert stream.response.text == "".join(words)
    provider.shutdown()


@pytest.mark.usefixtures("exported")
@pytest.mark.parametrize("streams", [False, True])
async def test_a_response_is_priced_and_built_once(
    monkeypatch: pytest.MonkeyPatch, *, streams: bool
) -> None:
    """The span of a request and the run that made it share the cost and the response."""
    priced: list[object] = []
    real = Prices._cost

    def counted(self: Prices, usage: Any, *rest: Any) -> Any:
        priced.append(usage)
        return real(self, usage, *rest)

    monkeypatch.setattr(Prices, "_cost", counted)
    answer = streamed("In ", "Mostar.") if streams else said("In Mostar.")
    with serving(answer) as vendor:
        async with _client(vendor) as client:
            agent = Agent(client)
            if streams:
                async with agent.stream("Where?") as stream:
                    async for _ in stream:
                        pass
                result = stream.result
            else:
                result = await agent.send("Where?")
    assert result.text == "In Mostar."
    assert len(priced) == 1


async def test_a_finished_stream_has_one_response(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a stream has collected is put together once, when nothing more can come."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    with serving(streamed("In ", "Mostar.")) as vendor:
        async with _client(vendor) as client, client.stream("Where?") as stream:
            async for _ in stream:
                pass
            assert stream.response is stream.response
    assert stream.response.text == "In Mostar."


# --- counted in bytecodes, which a busy machine doesn't change


def _is_tracing(code: CodeType) -> bool:
    path = code.co_filename.replace(os.sep, "/")
    return "/dragoman/tracing/" in path or "/opentelemetry/" in path


async def _counted(stream: Goes, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """The bytecodes of a streamed turn, and those that are tracing's."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    with serving(stream) as vendor:
        async with _client(vendor) as client:
            agent = Agent(client)

            async def turn() -> None:
                async with agent.stream("Where?") as events:
                    async for _ in events:
                        pass

            return await bytecodes(turn, _is_tracing)


@pytest.mark.parametrize("is_imported", [False, True])
async def test_no_overhead_when_disabled(
    monkeypatch: pytest.MonkeyPatch, *, is_imported: bool
) -> None:
    """Without the API, and without a provider: less than a hundredth of a short turn."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    if not is_imported:
        monkeypatch.delitem(sys.modules, "opentelemetry.trace")
        monkeypatch.delitem(sys.modules, "opentelemetry.metrics", raising=False)
    total, tracing = await _counted(_at_once("In ", "Mostar."), monkeypatch)
    assert tracing / (total - tracing) < 0.01


@pytest.mark.usefixtures("exported")
async def test_a_streamed_turn_is_a_twentieth_longer_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All of tracing, the SDK's own part included, for an answer of 300 events."""
    total, tracing = await _counted(_at_once(*["Mostar. "] * 300), monkeypatch)
    assert tracing / (total - tracing) < 0.05
