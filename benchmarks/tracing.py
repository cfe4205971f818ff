"""What tracing costs a turn of an agent over a connection: off, without an SDK, on, sampled out.

All take turns in one process, on a server in another one; what counts is the CPU time of the
agent's thread, in its best round of many short ones. Spans end in a `BatchSpanProcessor` whose
exporter throws them away. Beside it are the SDK's own floor (bare spans with the attributes of a
turn) and what pydantic-ai's instrumentation adds to a turn of its own.
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
OFF, API, ON, OUT, METERED = "off", "API without SDK", "SDK on", "sampled out", "SDK and metrics"
_EVENTS = 300
_LINE = "Tell me more about the Old Bridge, its builders and the river it stands over. "
_MOST = 1.05


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
        sampled_out = _processed(sdk.TracerProvider(sampler=sampling.ParentBased(
            sampling.ALWAYS_OFF)))  # fmt: skip
        meters = metrics.MeterProvider([reader()])
        self._all = {OFF: (None, None), API: (None, None), ON: (self.provider, None),
                     OUT: (sampled_out, None), METERED: (self.provider, meters)}  # fmt: skip

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
    url = f"{address}/{_EVENTS}/0/v1"
    async with Client("openai:gpt-4.1", base_url=url, dialect="openai-chat") as client:
        for what, job in _turns(client).items():
            jobs = {mode: (partial(modes.choose, mode), job)
                    for mode in (OFF, API, ON, OUT, METERED)}  # fmt: skip
            found = await measured(jobs, rounds, per_round)
            ratios += _shown(what, found, bar=what != SMALL)
    modes.choose(ON)
    floor = await measured({"two spans": (_nothing, partial(_bare, modes))}, rounds, 10)
    show("the SDK's own floor: bare spans with the attributes of a turn", floor, [])
    if peers:
        ways = {OFF: (_nothing, pydantic_job(None)), ON: (_nothing, pydantic_job(modes.provider))}
        ratios += _shown(PEER, await measured(ways, rounds, per_round), bar=False)
    return ratios


def _turns(client: Any) -> dict[str, Job]:
    from dragoman import Agent, Message, ToolDefinition

    roles = (Message.user, Message.assistant)
    history = [roles[n % 2](f"{n}. {_LINE * 3}") for n in range(40)]
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tools = [ToolDefinition(f"tool_{n}", _LINE, schema) for n in range(8)]
    plain, equipped = Agent(client), Agent(client, tools=tools, system=_LINE)

    async def streamed() -> None:
        async with plain.stream(_LINE) as stream:
            async for _ in stream:
                pass

    return {
        SMALL: lambda: plain.send("Where is it?"),
        LARGE: lambda: equipped.send(_LINE, history=history),
        STREAMED: streamed,
    }


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


def _shown(what: str, found: dict[str, float], *, bar: bool) -> list[Ratio]:
    ratios = [
        Ratio(f"{what}: {mode} / off", took / found[OFF],
              at_most=_MOST if bar and mode != METERED else None)
        for mode, took in found.items() if mode != OFF
    ]  # fmt: skip
    show(f"{what}; CPU time", found, ratios)
    return ratios


def _nothing() -> None:
    """There is nothing to set up."""


async def _bare(modes: Modes) -> None:
    """The two spans of a turn, as the SDK alone makes them."""
    tracer = modes.provider.get_tracer("bare")
    usage = {"gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 3,
             "operation.cost": 0.1}  # fmt: skip
    common = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai",
              "gen_ai.request.model": "gpt-4.1"}  # fmt: skip
    chat = {**common, "gen_ai.system": "openai", "server.address": "h", "server.port": 80}
    answer = {**usage, "gen_ai.response.id": "c1", "gen_ai.response.model": "gpt-4.1",
              "gen_ai.response.finish_reasons": ["stop"], "gen_ai.usage.cost": 0.1}  # fmt: skip
    outer = tracer.start_span("invoke_agent", attributes=common)
    inner = tracer.start_span(
        "chat gpt-4.1", kind=modes.trace.SpanKind.CLIENT, attributes=chat,
        context=modes.trace.set_span_in_context(outer),
    )  # fmt: skip
    inner.set_attributes(answer)
    inner.end()
    outer.set_attributes(usage)
    outer.end()


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
