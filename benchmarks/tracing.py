"""What tracing costs a turn of an agent over a connection: off, without an SDK, on, sampled out.

All take turns in one process, on a server in another one; what counts is the CPU time of the
agent's thread, in its best round of many short ones. Spans end in a `BatchSpanProcessor` whose
exporter throws them away.

The SDK's own floor is the same turn without our tracing, with as many bare spans around it, each
with the attributes of ours: what any instrumentation would cost. What we add beyond it is our
share; both are reported, and so is what pydantic-ai's instrumentation adds to a turn of its own.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from time import thread_time
from typing import Any

from benchmarks.report import Ratio, show
from benchmarks.transport import running

Job = Callable[[], Awaitable[Any]]
SMALL, LARGE = "a turn of one short message", "a turn on 40 messages, with 8 tools"
STREAMED, PEER = "a streamed turn of 300 events", "pydantic-ai: a plain turn without a network"
TOOLS = "a run with two tools"
OFF, API, ON, OUT, METERED = "off", "API without SDK", "SDK on", "sampled out", "SDK and metrics"
FLOOR, FLOOR_OUT = "the SDK's bare spans alone", "the same, sampled out"
MODES = (OFF, API, FLOOR, ON, FLOOR_OUT, OUT, METERED)
SPANS = {SMALL: (1, 0), LARGE: (1, 0), STREAMED: (1, 0), TOOLS: (2, 2)}
"""Model calls and tool calls of a turn."""
_EVENTS = 300
_LINE = "Tell me more about the Old Bridge, its builders and the river it stands over. "
_MOST, _MOST_OURS = 1.05, 5.0


class Modes:
    """The ways in which OpenTelemetry may be set up; one is chosen at a time."""

    def __init__(self) -> None:
        self.trace: Any = import_module("opentelemetry.trace")
        self.metrics: Any = import_module("opentelemetry.metrics")
        self._global: Any = import_module("opentelemetry.metrics._internal")
        sdk: Any = import_module("opentelemetry.sdk.trace")
        sampling: Any = import_module("opentelemetry.sdk.trace.sampling")
        metrics: Any = import_module("opentelemetry.sdk.metrics")
        reader: Any = import_module("opentelemetry.sdk.metrics.export").InMemoryMetricReader
        self.provider = _processed(sdk.TracerProvider())
        self.sampled_out = _processed(sdk.TracerProvider(sampler=sampling.ParentBased(
            sampling.ALWAYS_OFF)))  # fmt: skip
        meters = metrics.MeterProvider([reader()])
        self._all = {OFF: (None, None), API: (None, None), ON: (self.provider, None),
                     OUT: (self.sampled_out, None), METERED: (self.provider, meters)}  # fmt: skip

    def choose(self, mode: str) -> None:
        """Set it up, as a program would have at its start."""
        self.trace._TRACER_PROVIDER, self._global._METER_PROVIDER = self._all[mode]
        modules = {"opentelemetry.trace": self.trace, "opentelemetry.metrics": self.metrics}
        for name, module in modules.items():
            if mode == OFF:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = module

    def close(self) -> None:
        """Stop their threads."""
        self.choose(API)
        for provider, _ in self._all.values():
            if provider is not None:
                provider.shutdown()


def _processed(provider: Any) -> Any:
    export: Any = import_module("opentelemetry.sdk.trace.export")

    class Nowhere(export.SpanExporter):  # type: ignore[misc]  # its types are not known here
        """Throws spans away."""

        def export(self, spans: Any) -> Any:
            """As it says."""
            return export.SpanExportResult.SUCCESS if spans else None

    provider.add_span_processor(export.BatchSpanProcessor(Nowhere(), max_queue_size=1_000_000))
    return provider


def tracing(*, rounds: int = 300, per_round: int = 1, peers: bool = True) -> list[Ratio]:
    """All of it."""
    modes = Modes()
    with running("benchmarks.transport_server") as server, _key():
        assert server.stdout is not None  # for the type
        address = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        try:
            return asyncio.run(_all(modes, address, rounds, per_round, peers=peers))
        finally:
            modes.close()


@contextmanager
def _key() -> Generator[None]:
    before = os.environ.get("OPENAI_API_KEY")
    os.environ["OPENAI_API_KEY"] = "sk-none"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OPENAI_API_KEY"]
        else:
            os.environ["OPENAI_API_KEY"] = before


async def _all(
    modes: Modes, address: str, rounds: int, per_round: int, *, peers: bool
) -> list[Ratio]:
    from dragoman.transport import Client

    ratios: list[Ratio] = []
    for what, path in ((SMALL, "0"), (LARGE, "0"), (STREAMED, "0"), (TOOLS, "tools")):
        url = f"{address}/{_EVENTS}/{path}/v1"
        async with Client("openai:gpt-4.1", base_url=url, dialect="openai-chat") as client:
            job = _turns(client)[what]
            jobs = {mode: _prepared(modes, mode, job, *SPANS[what]) for mode in MODES}
            found = await measured(jobs, rounds, per_round)
            ratios += _compared(what, found)
    modes.choose(ON)
    if peers:
        ways = {OFF: (_nothing, pydantic_job(None)), ON: (_nothing, pydantic_job(modes.provider))}
        ratios += _shown(PEER, await measured(ways, rounds, per_round))
    return ratios


def _prepared(
    modes: Modes, mode: str, job: Job, calls: int, tools: int
) -> tuple[Callable[[], None], Job]:
    """What sets a mode up, and what is measured in it."""
    if mode not in {FLOOR, FLOOR_OUT}:
        return partial(modes.choose, mode), job
    provider = modes.provider if mode == FLOOR else modes.sampled_out
    bare = partial(_bare, modes, provider.get_tracer("bare"), job, calls, tools)
    return partial(modes.choose, OFF), bare


def _turns(client: Any) -> dict[str, Job]:
    from dragoman import Agent, Message, ToolDefinition

    roles = (Message.user, Message.assistant)
    history = [roles[n % 2](f"{n}. {_LINE * 3}") for n in range(40)]
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tools = [ToolDefinition(f"tool_{n}", _LINE, schema) for n in range(8)]
    plain, equipped = Agent(client), Agent(client, tools=tools, system=_LINE)
    working = Agent(client, tools=[_tool(n) for n in range(2)], system=_LINE)

    async def streamed() -> None:
        async with plain.stream(_LINE) as stream:
            async for _ in stream:
                pass

    return {
        SMALL: lambda: plain.send("Where is it?"),
        LARGE: lambda: equipped.send(_LINE, history=history),
        STREAMED: streamed,
        TOOLS: lambda: working.send(_LINE),
    }


def _tool(number: int) -> Any:
    from dragoman import tool

    async def look(city: str) -> str:
        """Look something up about a city."""
        return f"{city}: {_LINE}"

    return tool(name=f"tool_{number}")(look)


async def measured(
    jobs: Mapping[str, tuple[Callable[[], None], Job]], rounds: int, per_round: int
) -> dict[str, float]:
    """Seconds of CPU time for one run of each job, after what sets it up: the best round counts."""
    best = dict.fromkeys(jobs, float("inf"))
    gc.collect()
    gc.freeze()
    try:
        for place in range(rounds):
            turn = place % len(jobs)  # nobody is always the first, or always after the same one
            for name in [*jobs][turn:] + [*jobs][:turn]:
                prepare, job = jobs[name]
                prepare()
                await job()
                start = thread_time()
                for _ in range(per_round):
                    await job()
                best[name] = min(best[name], (thread_time() - start) / per_round)
    finally:
        gc.unfreeze()
    return best


def _compared(what: str, found: dict[str, float]) -> list[Ratio]:
    """The total of each mode, and our share of it beyond the SDK's floor, in percent of a turn."""
    has_bar = what != SMALL
    ratios = [
        Ratio(f"{what}: {mode} / off", found[mode] / found[OFF],
              at_most=_MOST if has_bar and mode in {API, ON, OUT} else None)
        for mode in MODES if mode != OFF
    ]  # fmt: skip
    ratios += [
        Ratio(f"{what}: {mode}, our share of a turn",
              (found[mode] - found[floor]) / found[OFF] * 100,
              at_most=_MOST_OURS if has_bar else None, unit="%")
        for mode, floor in ((ON, FLOOR), (OUT, FLOOR_OUT))
    ]  # fmt: skip
    show(f"{what}; CPU time", found, ratios)
    return ratios


def _shown(what: str, found: dict[str, float]) -> list[Ratio]:
    ratios = [Ratio(f"{what}: {ON} / off", found[ON] / found[OFF])]
    show(f"{what}; CPU time", found, ratios)
    return ratios


def _nothing() -> None:
    """There is nothing to set up."""


async def _bare(modes: Modes, tracer: Any, job: Job, calls: int, tools: int) -> None:
    """A turn among spans that the SDK alone makes, with the attributes of ours."""
    usage = {"gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 3,
             "operation.cost": 0.1}  # fmt: skip
    common = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai",
              "gen_ai.request.model": "gpt-4.1"}  # fmt: skip
    chat = {**common, "gen_ai.system": "openai", "server.address": "h", "server.port": 80}
    answer = {**usage, "gen_ai.response.id": "c1", "gen_ai.response.model": "gpt-4.1",
              "gen_ai.response.finish_reasons": ["stop"], "gen_ai.usage.cost": 0.1}  # fmt: skip
    called = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "tool_0",
              "gen_ai.tool.call.id": "call_0", "gen_ai.tool.type": "function",
              "gen_ai.tool.description": _LINE}  # fmt: skip
    outer = tracer.start_span("invoke_agent", attributes=common)
    context = modes.trace.set_span_in_context(outer)
    kind = modes.trace.SpanKind.CLIENT
    made = [(tracer.start_span("chat gpt-4.1", kind=kind, attributes=chat, context=context), answer)
            for _ in range(calls)]  # fmt: skip
    for _ in range(tools):
        tracer.start_span("execute_tool", attributes=called, context=context).end()
    await job()
    for span, found in (*made, (outer, usage)):
        if span.is_recording():
            span.set_attributes(found)
        span.end()


def pydantic_job(provider: Any) -> Job:
    """A turn of pydantic-ai's agent; instrumented, if there is a provider."""
    from benchmarks import agent_peers, agent_script

    options: dict[str, Any] = {}
    if provider is not None:
        ai: Any = import_module("pydantic_ai")
        capabilities: Any = import_module("pydantic_ai.capabilities")
        settings = ai.InstrumentationSettings(tracer_provider=provider, include_content=False)
        options["capabilities"] = [capabilities.Instrumentation(settings)]
    agent = agent_peers.pydantic_agent(**options)
    return lambda: agent.run(agent_script.PROMPT)
