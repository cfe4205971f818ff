"""What tracing costs a turn of an agent over a connection: off, without an SDK, on, sampled out.

All take turns in one process, on a server in another one; what counts is the CPU time of the
agent's process, in its best round of many short ones. Spans end in a `BatchSpanProcessor` whose
exporter throws them away.

The turn that users have is the chat's: streamed over HTTPS, each event in a packet of its own,
with 40 messages in an SQLite file, 8 tools, and answers as long as the recorded ones are. The
others are harder: no TLS, no store, and everything arrives at once.

The SDK's own floor is the same turn without our tracing, with as many bare spans before it, each
with the attributes of ours, made current once and propagated: what any instrumentation would cost.
What we add beyond it is our share; both are reported, and so is what pydantic-ai's instrumentation
adds to a turn of its own.

Bytecodes are counted, too: they don't depend on the machine's load, but leave out what C code does.
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
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from types import CodeType
from typing import Any, NamedTuple

from benchmarks.bytecodes import bytecodes
from benchmarks.recordings import recorded_answers
from benchmarks.report import Ratio, show
from benchmarks.transport import running

Job = Callable[[], Awaitable[Any]]
Jobs = Mapping[str, tuple[Callable[[], None], Job]]
"""What sets each of them up, and what is measured."""
SMALL, LARGE = "a turn of one short message", "a turn on 40 messages, with 8 tools"
STREAMED, PEER = "a streamed turn of 300 events", "pydantic-ai: a plain turn without a network"
TOOLS = "a run with two tools"
CHAT, LONG_CHAT = "a chat's turn, as long as recorded ones", "a chat's turn of 300 events"
OFF, API, ON, OUT, METERED = "off", "API without SDK", "SDK on", "sampled out", "SDK and metrics"
FLOOR, FLOOR_OUT = "the SDK's bare spans alone", "the same, sampled out"
MODES = (OFF, API, FLOOR, ON, FLOOR_OUT, OUT, METERED)


class Spans(NamedTuple):
    """The spans of a turn beside that of its run."""

    calls: int = 1
    tools: int = 0
    steps: int = 0
    """Of its history."""


SPANS = {SMALL: Spans(), LARGE: Spans(), STREAMED: Spans(), TOOLS: Spans(2, 2),
         CHAT: Spans(steps=3), LONG_CHAT: Spans(steps=3)}  # fmt: skip
_EVENTS = 300
_RECORDED = 14, 61
"""The medians of 976 recorded streams, in events, and of 1,890 answers, in characters."""
_PAUSE = 500  # microseconds between two events of a chat's turn
_LINE = "Tell me more about the Old Bridge, its builders and the river it stands over. "
_MOST, _MOST_OFF, _MOST_OURS = 1.05, 1.02, 5.0


class Modes:
    """The ways in which OpenTelemetry may be set up; one is chosen at a time."""

    def __init__(self) -> None:
        self.trace: Any = import_module("opentelemetry.trace")
        self.metrics: Any = import_module("opentelemetry.metrics")
        context: Any = import_module("opentelemetry.context")
        self.attach, self.detach = context.attach, context.detach
        self.inject: Any = import_module("opentelemetry.propagate").inject
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


def tracing(*, rounds: int = 300, chats: int = 60, peers: bool = True) -> list[Ratio]:
    """All of it."""
    modes = Modes()
    with TemporaryDirectory() as folder, _key(), _certified(Path(folder)) as file:
        try:
            return [
                *_with_server(modes, partial(_chats, rounds=chats, folder=Path(folder)), file),
                *_with_server(modes, partial(_all, rounds=rounds, peers=peers)),
            ]
        finally:
            modes.close()


def _with_server(
    modes: Modes, measuring: Callable[[Modes, str], Any], *files: str
) -> list[Ratio]:  # fmt: skip
    with running("benchmarks.transport_server", *files) as server:
        assert server.stdout is not None  # for the type
        port, scheme = server.stdout.readline().strip(), "https" if files else "http"
        found: list[Ratio] = asyncio.run(measuring(modes, f"{scheme}://127.0.0.1:{port}"))
        return found


@contextmanager
def _certified(folder: Path) -> Generator[str]:
    """The file of a certificate for loopback, which is trusted here, and of its key."""
    certificates: Any = import_module("tests.transport.certificates")
    _, public = certificates.certified(folder)
    both = folder / "both.pem"
    both.write_bytes(public.read_bytes() + (folder / "key.pem").read_bytes())
    os.environ["SSL_CERT_FILE"] = str(public)
    try:
        yield str(both)
    finally:
        del os.environ["SSL_CERT_FILE"]


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


def recorded_size() -> tuple[int, int]:
    """The medians of all recorded answers: events of streams, and characters of texts."""
    events, characters = recorded_answers()
    return (round(median(events)), round(median(characters))) if events else _RECORDED


async def _chats(modes: Modes, address: str, *, rounds: int, folder: Path) -> list[Ratio]:
    from dragoman.transport import Client

    ratios: list[Ratio] = []
    events, _ = recorded_size()
    for what, pieces in ((CHAT, events), (LONG_CHAT, _EVENTS)):
        url = f"{address}/{pieces}/{_PAUSE}/v1"
        async with Client("openai:gpt-4.1", base_url=url, dialect="openai-chat") as client:
            chat = Chat(client, f"sqlite:///{folder / 'chats.db'}")
            jobs = {mode: _prepared(modes, mode, chat.turn, what) for mode in MODES}
            if what == CHAT:  # the events of a longer one arrive together if the machine is busy
                ratios += await _counted(what, jobs, chat.ready)
            ratios += await _timed(what, jobs, rounds, chat.ready)
            await chat.close()
    return ratios


class Chat:
    """A conversation of 40 messages in an SQLite file, and its next turn."""

    def __init__(self, client: Any, storage: str) -> None:
        from dragoman import Agent

        self._agent = Agent(client, tools=_definitions(), system=_LINE)
        self._storage = storage
        self._numbers = count()
        self._history: Any = None

    async def ready(self) -> None:
        """Another conversation, equally long, in which a turn has been made."""
        from dragoman import ChatHistory, SessionIdentity

        await self.close()
        identity = SessionIdentity(agent="a", chat=str(next(self._numbers)), user="u")
        self._history = await ChatHistory.open(identity, storage=self._storage)
        await self._history.extend(_history())
        await self.turn()

    async def turn(self) -> None:
        """The next turn."""
        async with self._agent.stream(_LINE, history=self._history) as stream:
            async for _ in stream:
                pass

    async def close(self) -> None:
        """Close the history."""
        if self._history is not None:
            await self._history.close()


async def _all(modes: Modes, address: str, *, rounds: int, peers: bool) -> list[Ratio]:
    from dragoman.transport import Client

    ratios: list[Ratio] = []
    _, characters = recorded_size()
    for what, path in ((SMALL, "0/0"), (LARGE, "0/0"), (STREAMED, f"{_EVENTS}/0"),
                       (TOOLS, f"{characters}/tools")):  # fmt: skip
        url = f"{address}/{path}/v1"
        async with Client("openai:gpt-4.1", base_url=url, dialect="openai-chat") as client:
            job = _turns(client)[what]
            jobs = {mode: _prepared(modes, mode, job, what) for mode in MODES}
            ratios += [*await _counted(what, jobs), *await _timed(what, jobs, rounds)]
    modes.choose(ON)
    if peers:
        ways = {OFF: (_nothing, pydantic_job(None)), ON: (_nothing, pydantic_job(modes.provider))}
        ratios += _shown(PEER, await measured(ways, rounds))
    return ratios


def _prepared(
    modes: Modes, mode: str, job: Job, what: str
) -> tuple[Callable[[], None], Job]:  # fmt: skip
    """What sets a mode up, and what is measured in it."""
    if mode not in {FLOOR, FLOOR_OUT}:
        return partial(modes.choose, mode), job
    provider = modes.provider if mode == FLOOR else modes.sampled_out
    bare = partial(_bare, modes, provider.get_tracer("bare"), job, SPANS[what])
    return partial(modes.choose, OFF), bare


def _turns(client: Any) -> dict[str, Job]:
    from dragoman import Agent

    history = _history()
    plain, equipped = Agent(client), Agent(client, tools=_definitions(), system=_LINE)
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


def _history() -> list[Any]:
    from dragoman import Message

    roles = (Message.user, Message.assistant)
    return [roles[n % 2](f"{n}. {_LINE * 3}") for n in range(40)]


def _definitions() -> list[Any]:
    from dragoman import ToolDefinition

    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    return [ToolDefinition(f"tool_{n}", _LINE, schema) for n in range(8)]


def _tool(number: int) -> Any:
    from dragoman import tool

    async def look(city: str) -> str:
        """Look something up about a city."""
        return f"{city}: {_LINE}"

    return tool(name=f"tool_{number}")(look)


async def measured(jobs: Jobs, rounds: int, ready: Job | None = None) -> dict[str, float]:
    """Seconds of CPU time for one run of each job, after what sets it up: the best round counts.

    `ready` precedes each one; without it, a run that isn't measured.
    """
    best = dict.fromkeys(jobs, float("inf"))
    gc.collect()
    gc.freeze()
    try:
        for place in range(rounds):
            turn = place % len(jobs)  # nobody is always the first, or always after the same one
            for name in [*jobs][turn:] + [*jobs][:turn]:
                prepare, job = jobs[name]
                prepare()
                await (job if ready is None else ready)()
                start = process_time()
                await job()
                best[name] = min(best[name], process_time() - start)
    finally:
        gc.unfreeze()
    return best


async def _counted(what: str, jobs: Jobs, ready: Job | None = None) -> list[Ratio]:
    """The bytecodes of each mode, which don't depend on the load of the machine."""
    counts: dict[str, float] = {}
    hooks = 0
    for mode, (prepare, job) in jobs.items():
        prepare()
        if ready is not None:
            await ready()
        counts[mode], of_hooks = await bytecodes(job, _is_hook)
        hooks = of_hooks if mode == OFF else hooks
    ratios = _compared(what, f"{what}, bytecodes", counts)
    ratios.append(
        Ratio(f"{what}, bytecodes: off / without tracing",
              counts[OFF] / (counts[OFF] - hooks), at_most=_MOST_OFF)
    )  # fmt: skip
    print(f"\n{what}; bytecodes")
    for mode, number in counts.items():
        print(f"  {mode:58} {number:10,.0f}")
    for ratio in ratios:
        print(ratio)
    return ratios


async def _timed(what: str, jobs: Jobs, rounds: int, ready: Job | None = None) -> list[Ratio]:
    found = await measured(jobs, rounds, ready)
    ratios = _compared(what, what, found)
    show(f"{what}; CPU time", found, ratios)
    return ratios


_HOOKS = {"agent/run_loop.py": {"_traced"}, "agent/model_request.py": {"_traced"},
          "transport/client.py": {"_call", "_url", "_propagated"}}  # fmt: skip
"""The functions outside `tracing` that exist for its sake."""


def _is_hook(code: CodeType) -> bool:
    _, inside, path = code.co_filename.replace(os.sep, "/").rpartition("/dragoman/")
    return bool(inside) and (path.startswith("tracing/") or code.co_name in _HOOKS.get(path, ()))


def _compared(what: str, label: str, found: Mapping[str, float]) -> list[Ratio]:
    """The total of each mode, and our share of it beyond the SDK's floor, in percent of a turn."""
    most = {ON: _MOST, OUT: _MOST} if what in {LONG_CHAT, STREAMED} else {}
    has_bar = what != SMALL and label == what  # in CPU time
    ratios = [
        Ratio(f"{label}: {mode} / off", found[mode] / found[OFF],
              at_most=(most | {API: _MOST_OFF}).get(mode))
        for mode in MODES if mode != OFF
    ]  # fmt: skip
    ratios += [
        Ratio(f"{label}: {mode}, our share of a turn",
              (found[mode] - found[floor]) / found[OFF] * 100,
              at_most=_MOST_OURS if has_bar else None, unit="%")
        for mode, floor in ((ON, FLOOR), (OUT, FLOOR_OUT))
    ]  # fmt: skip
    return ratios


def _shown(what: str, found: dict[str, float]) -> list[Ratio]:
    ratios = [Ratio(f"{what}: {ON} / off", found[ON] / found[OFF])]
    show(f"{what}; CPU time", found, ratios)
    return ratios


def _nothing() -> None:
    """There is nothing to set up."""


async def _bare(modes: Modes, tracer: Any, job: Job, spans: Spans) -> None:
    """A turn, and spans that the SDK alone makes, with the attributes of ours."""
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
    stored = {"gen_ai.conversation.id": "0" * 40, "dragoman.history.storage": "SQLiteStorage"}
    outer = tracer.start_span("invoke_agent", attributes=common)
    context = modes.trace.set_span_in_context(outer)
    kind = modes.trace.SpanKind.CLIENT
    token = modes.attach(context)
    others = [called] * spans.tools + [stored] * spans.steps
    for attributes in others:
        _end(modes, tracer.start_span("another", attributes=attributes, context=context))
    for _ in range(spans.calls):
        span = tracer.start_span("chat gpt-4.1", kind=kind, attributes=chat, context=context)
        _end(modes, span, answer, is_sent=True)
    await job()
    modes.detach(token)
    _end(modes, outer, usage)


def _end(
    modes: Modes, span: Any, found: dict[str, Any] | None = None, *, is_sent: bool = False
) -> None:
    """Let a span be the current one, be propagated if it is of a request, and end."""
    token = modes.attach(modes.trace.set_span_in_context(span))
    if is_sent:
        modes.inject({})
    modes.detach(token)
    if found and span.is_recording():
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
