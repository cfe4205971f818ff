"""What tracing does not do: nothing per event that came with others, nothing for no reader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import context, trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased

from dragoman import Agent
from dragoman.agent import Hooks
from dragoman.agent.events import TextDelta
from dragoman.tracing import current, spans
from dragoman.transport import Client
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
