"""Spans and metrics, read back with OpenTelemetry's SDK and compared with its conventions."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from dragoman import Agent, ChatHistory, Message, SessionIdentity, Usage, tool
from dragoman.errors import DragomanError
from dragoman.history import MemoryStorage
from dragoman.model.media import Image
from dragoman.model.parts import Thinking
from dragoman.model.tools import make_call
from dragoman.providers.registry import providers
from dragoman.testing import EchoModel, ScriptedModel
from dragoman.tracing import attributes
from dragoman.transport import Client, FallbackModel, Retries
from tests.cli.loopback import Goes, said, serving, streamed

CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
KNOWN = {
    value
    for name, value in vars(
        import_module("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    ).items()
    if name.startswith("GEN_AI") and isinstance(value, str)
}
OURS = {"operation.cost", "gen_ai.usage.cost", "dragoman.history.storage"}
GENERAL = {"error.type", "server.address", "server.port"}
SECRET = "Where is the Old Bridge?"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """The exported spans."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    monkeypatch.delenv(CONTENT, raising=False)
    yield exporter
    provider.shutdown()


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryMetricReader]:
    """The recorded metrics."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr("opentelemetry.metrics._internal._METER_PROVIDER", provider)
    yield reader
    provider.shutdown()


def named(exporter: InMemorySpanExporter) -> dict[str, list[ReadableSpan]]:
    """The spans by name."""
    found: dict[str, list[ReadableSpan]] = {}
    for span in exporter.get_finished_spans():
        found.setdefault(span.name, []).append(span)
    return found


def only(exporter: InMemorySpanExporter) -> ReadableSpan:
    """The only span."""
    (span,) = exporter.get_finished_spans()
    return span


def fields(span: ReadableSpan) -> dict[str, Any]:
    """A span's attributes."""
    return dict(span.attributes or {})


def itself(span: ReadableSpan) -> tuple[int, int]:
    """Its trace id and span id."""
    assert span.context is not None
    return span.context.trace_id, span.context.span_id


def parent(span: ReadableSpan) -> int | None:
    """The id of its parent span."""
    return None if span.parent is None else span.parent.span_id


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"Sun over {city}."


@tool
def clock() -> str:
    """The time."""
    raise ValueError(SECRET)


def calling(name: str, **arguments: Any) -> Message:
    """A message that calls a tool."""
    return Message.assistant(make_call(f"call_{name}", name, raw=json.dumps(arguments)))


# --- an agent's run


async def test_a_run_with_two_tools_and_a_fallback(spans: InMemorySpanExporter) -> None:
    """One trace: the run, each request to each model, each tool, and what failed."""
    first = ScriptedModel([DragomanError, calling("weather", city="Mostar")], name="scripted:one")
    second = ScriptedModel([calling("clock"), "Sunny."], name="scripted:two")
    fallback = FallbackModel(first, second, when=lambda _: True)
    result = await Agent(fallback, tools=[weather, clock]).send(SECRET)
    assert result.text == "Sunny."
    found = named(spans)
    (run,) = found["invoke_agent"]
    assert len({itself(span)[0] for span in spans.get_finished_spans()}) == 1
    assert [name for name in found if parent(found[name][0]) == itself(run)[1]] != []
    children = [span for span in spans.get_finished_spans() if span is not run]
    assert {parent(span) for span in children} == {itself(run)[1]}
    assert sum(span.name.startswith("chat") for span in children) == 5
    failed = [span for span in children if span.status.status_code is StatusCode.ERROR]
    assert sorted(span.name.split()[0] for span in failed) == ["chat", "chat", "execute_tool"]
    tools = found["execute_tool weather"], found["execute_tool clock"]
    assert [fields(each[0])["gen_ai.tool.call.id"] for each in tools] == [
        "call_weather",
        "call_clock",
    ]
    assert fields(run)["gen_ai.usage.input_tokens"] == (result.usage or Usage()).total_input


async def test_a_model_without_a_name_of_its_own_is_named_by_its_provider(
    spans: InMemorySpanExporter,
) -> None:
    """The same in the span of the run as in that of the request."""
    await Agent(ScriptedModel(["Sunny."])).send(SECRET)
    found = named(spans)
    models = [fields(found[name][0])["gen_ai.request.model"] for name in found]
    assert models == ["scripted", "scripted"]


async def test_names_are_those_of_the_conventions(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every attribute is one that OpenTelemetry's package lists, or one of the few we add."""
    monkeypatch.setenv(CONTENT, "true")
    model = ScriptedModel([calling("weather", city="Mostar"), "Sunny."])
    await Agent(model, tools=[weather], system="Be brief.").send(SECRET, temperature=0.5)
    seen: set[str] = set()
    for span in spans.get_finished_spans():
        seen |= fields(span).keys()
    assert seen <= KNOWN | OURS | GENERAL
    assert seen >= {"gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.definitions",
                    "gen_ai.system_instructions", "gen_ai.tool.call.arguments",
                    "gen_ai.tool.call.result", "gen_ai.request.temperature"}  # fmt: skip


@pytest.mark.parametrize("streams", [False, True])
async def test_content_is_left_out_by_default(spans: InMemorySpanExporter, streams: bool) -> None:
    """Spans have no messages, arguments, results or error texts."""
    model = ScriptedModel([calling("weather", city=SECRET), calling("clock"), f"{SECRET}!"])
    agent = Agent(model, tools=[weather, clock], system=SECRET)
    await (agent.stream(SECRET).collect() if streams else agent.send(SECRET))
    with pytest.raises(DragomanError):
        await Agent(ScriptedModel([DragomanError(SECRET)])).send(SECRET)
    assert len(spans.get_finished_spans()) == 8
    for span in spans.get_finished_spans():
        assert SECRET not in span.to_json()


async def test_content_has_the_form_that_viewers_read(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages with roles and typed parts; media are named without their bytes."""
    monkeypatch.setenv(CONTENT, "SPAN_ONLY")
    picture = Image.from_bytes(b"\x89PNG bytes", mime="image/png")
    answer = Message.assistant(Thinking("Hm."), *calling("weather", city="Mostar").parts)
    model = ScriptedModel([answer, "Half \ud800 a character."])
    await Agent(model, tools=[weather], system="Be brief.").send("What is this?", picture)
    first, *_, last = [span for span in spans.get_finished_spans() if span.name.startswith("chat")]
    asked = json.loads(fields(first)["gen_ai.input.messages"])
    assert asked == [{"role": "user", "parts": [
        {"type": "text", "content": "What is this?"},
        {"type": "blob", "modality": "image", "mime_type": "image/png"}]}]  # fmt: skip
    (said_first,) = json.loads(fields(first)["gen_ai.output.messages"])
    assert said_first["finish_reason"] == "tool_calls"
    assert said_first["parts"] == [
        {"type": "reasoning", "content": "Hm."},
        {"type": "tool_call", "id": "call_weather", "name": "weather",
         "arguments": {"city": "Mostar"}}]  # fmt: skip
    (told,) = json.loads(fields(first)["gen_ai.tool.definitions"])
    assert (told["type"], told["name"]) == ("function", "weather")
    assert told["description"] == "The weather in a city."
    assert list(told["parameters"]["properties"]) == ["city"]
    assert json.loads(fields(first)["gen_ai.system_instructions"]) == [
        {"type": "text", "content": "Be brief."}
    ]
    replied = json.loads(fields(last)["gen_ai.input.messages"])[-1]["parts"]
    assert replied == [{"type": "tool_call_response", "id": "call_weather",
                        "response": "Sun over Mostar."}]  # fmt: skip
    assert "Half" in fields(last)["gen_ai.output.messages"]


# --- clients


async def test_a_request_over_the_network(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The span has address, settings and usage; the server gets its id."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with serving(said()) as vendor:
        async with Client("openai:gpt-5", base_url=f"{vendor.url}/v1", dialect="openai-chat") as it:
            await it.send(SECRET)
        port = int(vendor.url.rpartition(":")[2])
    span = only(spans)
    assert (span.name, span.kind) == ("chat gpt-5", SpanKind.CLIENT)
    cost = (Usage(input=9, output=3).input * 1.25 + 3 * 10) / 1e6
    assert fields(span) == {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai",
        "gen_ai.system": "openai", "gen_ai.request.model": "gpt-5", "gen_ai.response.model": "m",
        "gen_ai.response.id": "c1", "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 3,
        "server.address": "127.0.0.1", "server.port": port,
        "operation.cost": pytest.approx(cost), "gen_ai.usage.cost": pytest.approx(cost),
    }  # fmt: skip
    sent = {name.lower(): value for name, value in vendor.came[0].headers.items()}
    assert sent["traceparent"].split("-")[1:3] == [
        f"{itself(span)[0]:032x}", f"{itself(span)[1]:016x}"]  # fmt: skip


async def test_a_stream_is_one_span(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the request to the last event, with the time to the first."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with serving(streamed("In ", "Mostar.")) as vendor:
        async with Client("openai:gpt-5", base_url=f"{vendor.url}/v1", dialect="openai-chat") as it:
            async for _ in it.stream(SECRET):
                assert not spans.get_finished_spans()
    found = fields(only(spans))
    assert found["gen_ai.request.stream"] is True
    assert found["gen_ai.response.time_to_first_chunk"] > 0
    assert found["gen_ai.response.finish_reasons"] == ("stop",)
    assert "traceparent" in {name.lower() for name in vendor.came[0].headers}


async def test_a_stream_that_is_left_ends_its_span(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leaving is no error; an interruption is one."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    where: dict[str, Any] = {"dialect": "openai-chat", "retries": Retries(attempts=1)}
    with serving(streamed("In ", "Mostar.", hangs=True)) as vendor:
        async with (Client("openai:gpt-5", base_url=f"{vendor.url}/v1", **where) as it,
                    it.stream(SECRET) as stream):  # fmt: skip
            await anext(aiter(stream))
    with serving(streamed("In ", is_whole=False)) as vendor:
        async with Client("openai:gpt-5", base_url=f"{vendor.url}/v1", **where) as it:
            with pytest.raises(DragomanError):
                await it.stream(SECRET).collect()
    left, broken = spans.get_finished_spans()
    assert left.status.status_code is StatusCode.UNSET
    assert broken.status.status_code is StatusCode.ERROR
    assert fields(broken)["error.type"] == "StreamInterrupted"


async def test_an_error_response_has_its_status(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`error.type` is the status; retries are in one span."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    answers = iter([Goes({"error": {"message": SECRET}}, 500), Goes({"error": {}}, 401)])
    with serving(lambda _came: next(answers)) as vendor:
        retries = Retries(attempts=2, initial_delay=0.01)
        async with Client("openai:gpt-5", base_url=f"{vendor.url}/v1", dialect="openai-chat",
                          retries=retries) as it:  # fmt: skip
            with pytest.raises(DragomanError):
                await it.send(SECRET)
    span = only(spans)
    assert fields(span)["error.type"] == "401"
    assert SECRET not in span.to_json()


async def test_embeddings_have_a_span(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Like chats."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    answer = {"data": [{"index": 0, "embedding": [0.5]}], "model": "m",
              "usage": {"prompt_tokens": 4, "total_tokens": 4}}  # fmt: skip
    with serving(Goes(answer)) as vendor:
        async with Client("openai?embeddings=e-1", base_url=f"{vendor.url}/v1") as it:
            await it.embed("Bridge")
    span = only(spans)
    assert span.name == "embeddings e-1"
    assert fields(span)["gen_ai.usage.input_tokens"] == 4


async def test_tools_see_the_span_they_run_in(spans: InMemorySpanExporter) -> None:
    """On the loop and on threads, their own spans are children of it."""
    seen: list[int] = []

    @tool
    async def near() -> str:
        """Near."""
        seen.append(trace.get_current_span().get_span_context().span_id)
        return "1"

    @tool
    def far() -> str:
        """Far."""
        seen.append(trace.get_current_span().get_span_context().span_id)
        return "2"

    model = ScriptedModel([calling("near"), calling("far"), "Done."])
    await Agent(model, tools=[near, far]).send("Go.")
    tools = [span for span in spans.get_finished_spans() if span.name.startswith("execute_tool")]
    assert [itself(span)[1] for span in tools] == seen


def test_blocking_calls_are_part_of_the_callers_span(spans: InMemorySpanExporter) -> None:
    """The work is done on another thread, with the caller's span as parent."""
    with trace.get_tracer("mine").start_as_current_span("mine") as mine:
        Agent(EchoModel()).send_sync("Hi")
    run = named(spans)["invoke_agent"][0]
    assert parent(run) == mine.get_span_context().span_id


@pytest.mark.parametrize("streams", [False, True])
async def test_a_stored_run_shows_its_history(spans: InMemorySpanExporter, streams: bool) -> None:
    """Reads and writes are spans within the run, with the same session id."""
    async with ChatHistory(SessionIdentity("test", "user", "s-1"), MemoryStorage()) as history:
        agent = Agent(EchoModel())
        await (agent.stream("Hi", history=history).collect() if streams
               else agent.send("Hi", history=history))  # fmt: skip
        digest = history.identity.digest
    found = named(spans)
    (run,) = found["invoke_agent"]
    steps = [span for span in spans.get_finished_spans() if span.name.startswith("history")]
    assert {"history append"} <= {span.name for span in steps}
    inner = [span for span in steps if parent(span) == itself(run)[1]]
    assert len(inner) >= 2
    for span in (run, *inner):
        assert fields(span)["gen_ai.conversation.id"] == digest
    assert fields(steps[0])["dragoman.history.storage"] == "MemoryStorage"


class _Broken:
    """A span processor that fails at every step."""

    def on_start(self, *_: object, **__: object) -> None:
        """Fail."""
        raise ValueError(SECRET)

    on_end = _on_ending = on_start

    def shutdown(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("fails", ["on_start", "on_end"])
@pytest.mark.parametrize("streams", [False, True])
async def test_a_broken_processor_breaks_no_run(
    fails: str, streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run ends normally."""
    processor: Any = type("Processor", (_Broken,), {
        name: lambda *_, **__: None
        for name in ("on_start", "on_end", "_on_ending") if name != fails})()  # fmt: skip
    provider = TracerProvider()
    provider.add_span_processor(processor)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    monkeypatch.setenv(CONTENT, "true")
    agent = Agent(ScriptedModel([calling("weather", city="Mostar"), "Sunny."]), tools=[weather])
    result = await (agent.stream("Hi").collect() if streams else agent.send("Hi"))
    assert result.text == "Sunny."


# --- metrics


async def test_metrics_are_recorded(
    measured: InMemoryMetricReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Duration, tokens by kind, and the time to the first chunk; without any span."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with serving(
        lambda came: streamed("In ", "Mostar.") if came.json.get("stream") else said()
    ) as vendor:
        async with Client("openai:gpt-5", base_url=f"{vendor.url}/v1", dialect="openai-chat") as it:
            await it.send(SECRET)
            await it.stream(SECRET).collect()
    data = measured.get_metrics_data()
    assert data is not None
    (scope,) = data.resource_metrics[0].scope_metrics
    assert scope.scope.name == "dragoman"
    found = {metric.name: metric for metric in scope.metrics}
    assert {name: metric.unit for name, metric in found.items()} == {
        "gen_ai.client.operation.duration": "s",
        "gen_ai.client.operation.time_to_first_chunk": "s",
        "gen_ai.client.token.usage": "{token}",
    }
    points: Any = found["gen_ai.client.token.usage"].data.data_points
    assert {point.attributes["gen_ai.token.type"]: point.sum for point in points} == {
        "input": 9, "output": 3}  # fmt: skip


# --- without tracing


def test_nothing_is_imported_without_tracing() -> None:
    """Although the package is installed here."""
    program = (
        "import sys; from dragoman import Agent; from dragoman.testing import EchoModel;"
        "Agent(EchoModel()).send_sync('Hi');"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


async def test_without_a_provider_no_span_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    """The request has no trace headers."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with serving(said()) as vendor:
        async with Client("openai:gpt-5", base_url=f"{vendor.url}/v1", dialect="openai-chat") as it:
            await it.send("Hi")
    assert "traceparent" not in {name.lower() for name in vendor.came[0].headers}


def test_every_name_in_the_sources_is_one_of_the_conventions() -> None:
    """Those that no test's run sets, too; and those of metrics."""
    metrics = import_module("opentelemetry.semconv._incubating.metrics.gen_ai_metrics")
    known = {value for value in vars(metrics).values() if isinstance(value, str)} | KNOWN | OURS
    package = Path(attributes.__file__).parent.parent
    names = {
        name
        for file in package.rglob("*.py")
        for name in re.findall(r'"(gen_ai\.[a-z_.]+)"', file.read_text(encoding="utf-8"))
    }
    assert len(names) > 30
    assert names <= known
    recorded = ("operation.duration", "operation.time_to_first_chunk", "token.usage")
    assert {f"gen_ai.client.{name}" for name in recorded} <= known


def test_providers_have_the_names_of_the_conventions() -> None:
    """Those that the conventions name; others keep their own."""
    conventions = import_module("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    known = {each.value for each in conventions.GenAiProviderNameValues}
    assert set(attributes.PROVIDERS.values()) <= known
    ours = {each.name for each in providers()}
    similar = {name for name in ours - known if any(name in each for each in known)}
    assert similar <= attributes.PROVIDERS.keys()
