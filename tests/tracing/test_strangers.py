"""Tracing with third-party providers, samplers, exporters, propagators and models.

Whatever they do, the run continues, its spans end, and nothing is left behind.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from opentelemetry import baggage, context, propagate, trace
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from opentelemetry.trace import StatusCode

from dragoman import Agent, Message, Request, Response, Usage, tool
from dragoman.agent.events import TextDelta
from dragoman.errors import InvalidInputError, ServerError
from dragoman.model.events import Event
from dragoman.model.responses import Choice
from dragoman.model.tools import make_call
from dragoman.model.usage import FinishReason
from dragoman.testing import EchoModel, ScriptedModel
from dragoman.tracing import attributes
from dragoman.tracing import spans as tracing_spans
from dragoman.transport import Client
from tests.cli.loopback import Goes, said, serving, streamed
from tests.tracing.test_tracing import CONTENT, calling, fields, itself, measured, named, parent

__all__ = ["measured"]

_PATIENCE = 30


def _provide(monkeypatch: pytest.MonkeyPatch, provider: Any) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """The exported spans."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    _provide(monkeypatch, provider)
    monkeypatch.delenv(CONTENT, raising=False)
    yield exporter
    provider.shutdown()


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"Sun over {city}."


def _agent() -> Agent[Any, str]:
    return Agent(ScriptedModel([calling("weather", city="Mostar"), "Sunny."]), tools=[weather])


async def _run(agent: Agent[Any, str], *, streams: bool) -> str:
    result = await (agent.stream("Hi").collect() if streams else agent.send("Hi"))
    return result.text


# --- providers, samplers, exporters


class _Raising:
    """A tracer provider, a tracer and a sampler that raise."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class _RaisingTracer:
    def get_tracer(self, *_: object, **__: object) -> Any:
        """A tracer that raises."""
        return _Raising()


class _Span:
    """A span whose methods all raise."""

    def is_recording(self) -> bool:
        """Claim to record."""
        return True

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class _RaisingSpans:
    def get_tracer(self, *_: object, **__: object) -> Any:
        """A tracer whose spans raise."""
        return self

    def start_span(self, *_: object, **__: object) -> Any:
        """One of them."""
        return _Span()


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("provider", [_Raising, _RaisingTracer, _RaisingSpans])
async def test_a_provider_that_raises_breaks_no_run(
    provider: type[Any], streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the provider, the tracer or the span raises."""
    _provide(monkeypatch, provider())
    monkeypatch.setenv(CONTENT, "true")
    assert await _run(_agent(), streams=streams) == "Sunny."


async def test_a_missing_provider_breaks_no_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """OpenTelemetry looks for it on first use, and raises."""
    _provide(monkeypatch, None)
    monkeypatch.setenv("OTEL_PYTHON_TRACER_PROVIDER", "no-such-provider")
    assert await _run(_agent(), streams=False) == "Sunny."


class _Down(SpanExporter):
    """An exporter whose server is down."""

    def export(self, spans: Any) -> SpanExportResult:
        """Fail."""
        del spans
        raise ConnectionError

    def shutdown(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("processor", [SimpleSpanProcessor, BatchSpanProcessor])
async def test_an_exporter_that_is_down_breaks_no_run(
    processor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the spans are lost."""
    provider = TracerProvider()
    provider.add_span_processor(processor(_Down()))
    _provide(monkeypatch, provider)
    assert await _run(_agent(), streams=True) == "Sunny."
    logging.disable()  # the SDK logs the failure
    try:
        provider.shutdown()
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.parametrize("streams", [False, True])
async def test_sampled_out_spans_are_not_described(
    streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither content nor outcomes nor costs are collected for them."""
    provider = TracerProvider(sampler=ParentBased(ALWAYS_OFF))
    _provide(monkeypatch, provider)
    monkeypatch.setenv(CONTENT, "true")

    def refused(*_: object) -> Any:
        pytest.fail("somebody described what nobody sees")

    for name in ("request_content", "response_content", "result_content", "response_attributes"):
        monkeypatch.setattr(tracing_spans, name, refused)
    assert await _run(_agent(), streams=streams) == "Sunny."


async def test_a_sampled_out_call_propagates_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server gets the trace id, and that it is not recorded."""
    _provide(monkeypatch, TracerProvider(sampler=ParentBased(ALWAYS_OFF)))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with serving(said()) as vendor:
        async with Client("openai:gpt-5", base_url=f"{vendor.url}/v1", dialect="openai-chat") as it:
            await it.send("Hi")
    sent = {name.lower(): value for name, value in vendor.came[0].headers.items()}
    assert int(sent["traceparent"].rpartition("-")[2], 16) & 1 == 0


# --- propagators


class _Hostile:
    """A propagator that adds invalid headers, and headers of others."""

    fields: frozenset[str] = frozenset()

    def inject(self, carrier: Any, *_: object, **__: object) -> None:
        """All of them."""
        carrier.update({
            "x-split": "1\r\nx-smuggled: 2", "x-null": "\0", "x bad": "1", "": "1", "x-é": "1",
            "x-high": "é\ud800", "Authorization": "Bearer stolen", "authorization": "Bearer s",
            "Content-Length": "0", "Transfer-Encoding": "chunked", "Host": "evil.example",
            "x-good": "kept",
        })  # fmt: skip

    def extract(self, *_: object, **__: object) -> Any:
        """Nothing."""
        return context.get_current()


async def test_a_hostile_propagator_changes_no_request(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only valid headers are added, and none that the request or the connection has."""
    monkeypatch.setattr(propagate, "_HTTP_TEXT_FORMAT", _Hostile())
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with serving(said()) as vendor:
        async with Client("openai:gpt-5", base_url=f"{vendor.url}/v1", dialect="openai-chat") as it:
            await it.send("Hi")
    sent = {name.lower(): value for name, value in vendor.came[0].headers.items()}
    assert sent["authorization"] == "Bearer sk-1"
    assert sent["host"] != "evil.example"
    assert sent["content-length"] != "0"
    assert {name for name in sent if name.startswith("x")} == {"x-good"}
    assert len(spans.get_finished_spans()) == 1


class _Odd(_Hostile):
    def inject(self, carrier: Any, *_: object, **__: object) -> None:
        """Values that aren't texts."""
        carrier.update({1: "x", "x-number": 2, "x-none": None})


async def test_a_propagator_with_invalid_values_breaks_no_request(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request is sent without them."""
    monkeypatch.setattr(propagate, "_HTTP_TEXT_FORMAT", _Odd())
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with serving(said()) as vendor:
        async with Client("openai:gpt-5", base_url=f"{vendor.url}/v1", dialect="openai-chat") as it:
            await it.send("Hi")
    assert not {name for name in vendor.came[0].headers if name.startswith("x-")}
    assert len(spans.get_finished_spans()) == 1


async def test_baggage_is_propagated(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In OpenTelemetry's encoding."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    token = context.attach(baggage.set_baggage("tenant", "Müller\r\n"))
    try:
        with serving(said()) as vendor:
            async with Client("openai:gpt-5", base_url=f"{vendor.url}/v1",
                              dialect="openai-chat") as it:  # fmt: skip
                await it.send("Hi")
    finally:
        context.detach(token)
    sent = {name.lower(): value for name, value in vendor.came[0].headers.items()}
    assert sent["baggage"] == "tenant=M%C3%BCller%0D%0A"
    assert len(spans.get_finished_spans()) == 1


# --- runs that don't end normally


async def test_a_cancelled_run_ends_its_spans(spans: InMemorySpanExporter) -> None:
    """The run's and its tool's spans are marked cancelled; the caller's is current again."""
    started = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        started.set()
        await asyncio.Event().wait()
        return ""

    agent = Agent(ScriptedModel([calling("wait")]), tools=[wait])
    with trace.get_tracer("mine").start_as_current_span("mine") as mine:
        task = asyncio.create_task(agent.send("Go."))
        await asyncio.wait_for(started.wait(), _PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert trace.get_current_span() is mine
    found = named(spans)
    assert {"invoke_agent", "execute_tool wait"} <= found.keys()
    for name in ("invoke_agent", "execute_tool wait"):
        assert found[name][0].status.status_code is StatusCode.ERROR
        assert fields(found[name][0])["error.type"] == "CancelledError"


@pytest.mark.usefixtures("quick_collector")
@pytest.mark.parametrize("how", ["closed", "closed elsewhere", "dropped"])
async def test_a_run_left_in_mid_stream_ends_its_spans(
    how: str, spans: InMemorySpanExporter, caplog: pytest.LogCaptureFixture
) -> None:
    """Leaving is no error; nothing is logged, and no span stays current."""
    before = trace.get_current_span()
    stream = Agent(EchoModel()).stream("One two three four")
    events = stream.events()
    async for event in events:
        assert trace.get_current_span() is before  # what the consumer does is no part of the run
        if isinstance(event, TextDelta):
            break
    if how == "closed":
        await stream.close()
    elif how == "closed elsewhere":
        await asyncio.create_task(stream.close())
    del stream, events, event
    for _ in range(5):
        gc.collect()
        await asyncio.sleep(0)
    assert trace.get_current_span() is before
    assert sorted(named(spans)) == ["chat echo", "invoke_agent"]
    for span in spans.get_finished_spans():
        assert span.status.status_code is StatusCode.UNSET
    assert not caplog.records


@pytest.mark.usefixtures("quick_collector")
async def test_a_dropped_stream_of_a_client_ends_its_span(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if it isn't closed."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with serving(streamed("In ", "Mostar.", hangs=True)) as vendor:
        async with Client("openai:gpt-5", base_url=f"{vendor.url}/v1", dialect="openai-chat") as it:
            stream = it.stream("Hi")
            await anext(aiter(stream))
            assert not spans.get_finished_spans()
            del stream
            for _ in range(5):
                gc.collect()
                await asyncio.sleep(0)
            (span,) = spans.get_finished_spans()
    assert span.status.status_code is StatusCode.UNSET


async def test_threads_of_tools_do_not_disturb_the_trace(spans: InMemorySpanExporter) -> None:
    """A thread that outlives its tool has its own spans, and the run's spans are complete."""
    go_on = threading.Event()
    threads: list[threading.Thread] = []

    def later() -> None:
        go_on.wait(_PATIENCE)
        Agent(EchoModel()).send_sync("From a thread.")

    @tool
    def start() -> str:
        """Start."""
        threads.append(threading.Thread(target=later))
        threads[0].start()
        return "started"

    await Agent(ScriptedModel([calling("start"), "Done."]), tools=[start], name="outer").send("Go.")
    go_on.set()
    await asyncio.to_thread(threads[0].join, _PATIENCE)
    found = named(spans)
    (outer,), (inner,) = found["invoke_agent outer"], found["invoke_agent"]
    assert itself(outer)[0] != itself(inner)[0]
    assert parent(found["execute_tool start"][0]) == itself(outer)[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes can't be forked here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forking with threads
def test_a_forked_process_continues_the_trace(spans: InMemorySpanExporter) -> None:
    """Within its parent's span, with the tracer that the parent has used."""
    coming, going = os.pipe()
    with trace.get_tracer("mine").start_as_current_span("mine") as mine:
        asyncio.run(Agent(EchoModel()).send("Hi"))
        before = len(spans.get_finished_spans())
        child = os.fork()
        if child == 0:
            try:
                asyncio.run(Agent(EchoModel()).send("Hi"))
                made = spans.get_finished_spans()[before:]
                parents = [parent(span) for span in made if span.name == "invoke_agent"]
                os.write(going, json.dumps([len(made), parents]).encode())
            finally:
                os._exit(0)
        os.close(going)
        os.waitpid(child, 0)
    with os.fdopen(coming) as found:
        assert json.load(found) == [2, [mine.get_span_context().span_id]]


# --- values


async def test_unusual_values_do_not_lose_the_batch(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spans are exported together: one that can't be encoded would lose the others."""
    monkeypatch.setenv(CONTENT, "true")
    odd = "\ud800"
    usage = Usage(input=10**30, output=3)
    call = make_call(f"id{odd}", "weather", raw=f'{{"city": "{odd}"}}')
    answers = [
        Response(
            choices=(Choice(0, Message.assistant(call), FinishReason.TOOL_CALLS),),
            usage=usage, model=f"m{odd}", id=f"r{odd}",
        ),
        f"Done{odd}.",
    ]  # fmt: skip
    agent = Agent(ScriptedModel(answers), tools=[weather], system=odd, name=f"a{odd}", stop=[odd],
                  seed=10**30)  # fmt: skip
    await agent.send(odd)
    finished = spans.get_finished_spans()
    assert len(finished) == 4
    encoder = pytest.importorskip("opentelemetry.exporter.otlp.proto.common.trace_encoder")
    assert encoder.encode_spans(finished).SerializeToString()


def test_hostile_response_models_fill_no_memory() -> None:
    """Metric labels are kept for a limited number of models."""
    place = attributes.Place("chat", "openai", "m", None)
    for number in range(1000):
        labels = place.labels(f"m{number}", None)
        assert labels.input["gen_ai.response.model"] == f"m{number}"
    assert len(place._labels) <= 64


def test_a_placeholder_is_no_address() -> None:
    """A local model's server has no known address before it runs."""
    assert (
        "server.address"
        not in attributes.place("chat", "local", "m", "http://local.invalid/v1").common
    )
    real = attributes.place("chat", "local", "m", "http://[::1]:8080/v1").common
    assert (real["server.address"], real["server.port"]) == ("::1", 8080)


# --- third-party models


class _Custom:
    """A third-party model that knows nothing of tracing."""

    name = "mine:large"

    def __init__(self, fails: bool = False) -> None:
        self._fails = fails

    async def send(self, request: Request) -> Response:
        """An answer."""
        del request
        if self._fails:
            raise ServerError(self.name, status=503)
        message = Message.assistant("In Mostar.")
        return Response(
            choices=(Choice(0, message, FinishReason.STOP),),
            usage=Usage(input=9, output=3),
            model="large-1",
        )

    def stream(self, request: Request) -> Any:
        """The same, as a stream."""
        return ScriptedModel([self.send(request)]).stream(request)

    async def close(self) -> None:
        """Nothing is open."""


class _Streaming(_Custom):
    """One with its own streaming."""

    def stream(self, request: Request) -> Any:
        """The same, as a stream."""
        return _Events(self.send(request))


class _Events:
    """A stream with the methods that an agent needs."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self.response = Response()
        self.is_complete = self.has_started = self.is_over = False

    async def __aiter__(self) -> AsyncIterator[Event]:
        from dragoman.transport.answers import events_of

        self.response = await self._answer
        for event in events_of(self.response):
            yield event
        self.is_complete = True

    async def close(self) -> None:
        """Nothing is open."""


class _Wrapping(_Custom):
    """One that calls a model of ours."""

    async def send(self, request: Request) -> Response:
        """The other model's answer."""
        return await EchoModel().send(request)


@pytest.mark.parametrize("streams", [False, True])
async def test_a_custom_model_has_a_chat_span(spans: InMemorySpanExporter, streams: bool) -> None:
    """The agent creates it, with the model's name, tokens and duration."""
    assert await _run(Agent(_Streaming()), streams=streams) == "In Mostar."
    found = named(spans)
    (chat,), (run,) = found["chat large"], found["invoke_agent"]
    assert parent(chat) == itself(run)[1]
    assert fields(chat)["gen_ai.provider.name"] == "mine"
    assert fields(chat)["gen_ai.response.model"] == "large-1"
    assert fields(chat)["gen_ai.usage.input_tokens"] == 9
    assert _within(chat, run)


class _Slow(_Custom):
    """One that takes its time."""

    async def send(self, request: Request) -> Response:
        """The answer, after a while."""
        await asyncio.sleep(0.05)
        return await super().send(request)


async def test_the_time_of_a_custom_model_is_measured(request: pytest.FixtureRequest) -> None:
    """From the request on, though its call is noted when the answer is there."""
    measured: InMemoryMetricReader = request.getfixturevalue("measured")
    await Agent(_Slow()).send("Hi")
    data = measured.get_metrics_data()
    assert data is not None
    (scope,) = data.resource_metrics[0].scope_metrics
    points: Any = next(m for m in scope.metrics if m.name.endswith("duration")).data.data_points
    assert 0.05 <= sum(point.sum for point in points) < _PATIENCE


def _within(inner: ReadableSpan, outer: ReadableSpan) -> bool:
    times = outer.start_time, inner.start_time, inner.end_time, outer.end_time
    rounding = 1_000_000  # two clocks
    assert None not in times
    return (times[0] or 0) - rounding <= (times[1] or 0) <= (times[2] or 0) <= (times[3] or 0)


async def test_a_custom_model_that_fails_has_a_failed_span(spans: InMemorySpanExporter) -> None:
    """With the status."""
    with pytest.raises(ServerError):
        await Agent(_Custom(fails=True)).send("Hi")
    (chat,) = named(spans)["chat large"]
    assert fields(chat)["error.type"] == "503"


async def test_a_wrapping_model_has_only_the_inner_span(
    spans: InMemorySpanExporter,
) -> None:
    """Two would count the tokens twice."""
    await Agent(_Wrapping()).send("Hi")
    assert sorted(named(spans)) == ["chat echo", "invoke_agent"]


# --- names of agents


async def test_a_named_agent_is_named_in_its_span(spans: InMemorySpanExporter) -> None:
    """And in its repr, its results and the tools that others call it with."""
    billing = Agent(ScriptedModel(["5 euros.", "6 euros."]), name="billing")
    call = Message.assistant(make_call("c1", "billing", raw='{"prompt": "How much?"}'))
    desk = Agent(ScriptedModel([call, "All of 5 euros."]), name="desk",
                 tools=[billing.as_tool(description="Knows bills.")])  # fmt: skip
    result = await desk.send("What do I owe?")
    assert (result.text, result.agent) == ("All of 5 euros.", "desk")
    found = named(spans)
    (outer,), (inner,) = found["invoke_agent desk"], found["invoke_agent billing"]
    assert fields(outer)["gen_ai.agent.name"] == "desk"
    assert fields(inner)["gen_ai.agent.name"] == "billing"
    assert parent(inner) == itself(found["execute_tool billing"][0])[1]
    assert repr(desk) == "Agent(desk, scripted:, 1 tools)"
    handoff = billing.as_handoff(description="Knows bills.")
    assert (handoff.name, billing.name) == ("billing", "billing")
    assert billing.with_model(EchoModel()).name == "billing"


def test_an_agent_needs_a_name_for_tools_and_handoffs() -> None:
    """Without one, both are errors."""
    agent = Agent(EchoModel())
    assert agent.name is None
    for make in (agent.as_tool, agent.as_handoff):
        with pytest.raises(InvalidInputError, match="has no name"):
            make(description="Says it again.")


def test_a_name_that_might_be_a_sentence_is_not_shown() -> None:
    """The repr only shows names."""
    assert "secret" not in repr(Agent(EchoModel(), name="a secret sentence"))
    with pytest.raises(InvalidInputError):
        Agent(EchoModel(), name=7)  # type: ignore[call-overload]


async def test_embeddings_have_their_size(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of dimensions."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    answer = {"data": [{"index": 0, "embedding": [0.5, 1.5]}], "model": "m"}
    with serving(Goes(answer)) as vendor:
        async with Client("openai?embeddings=e-1", base_url=f"{vendor.url}/v1") as it:
            await it.embed("Bridge")
    (span,) = spans.get_finished_spans()
    assert fields(span)["gen_ai.embeddings.dimension.count"] == 2
