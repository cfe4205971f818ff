"""Runs that are killed while their tools run, and checks of what remains."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from time import sleep
from types import TracebackType
from typing import Any, NamedTuple, Self

from dragoman import (
    Agent,
    ChatHistory,
    Message,
    Request,
    Role,
    ToolCall,
    ToolDefinition,
    ToolExecutor,
    dialect,
    tool,
)
from dragoman.agent.conversations import begun_in
from dragoman.agent.events import AgentEvent, MessageAdded, StepStarted, ToolFinished, ToolStarted
from dragoman.agent.round_records import UNKNOWN
from dragoman.testing import ScriptedModel
from dragoman.wire.dialect import dialects
from tests.history.torture import Place

ROUNDS: Sequence[Sequence[str]] = (
    ("quick", "slow", "blocking", "quick"),
    ("slow",),
    ("blocking", "quick"),
    ("quick", "slow", "blocking", "quick") * 3,
)
"""The tools that each answer calls; the one after the last calls none."""
DONE = "All done."
_PAUSE = 0.003

# --- the moments at which a run can be killed

MOMENTS: Mapping[str, str] = {
    "before the prompt": "open",
    "after the prompt": "message user",
    "before the first question": "step 1",
    "after the answer": "message assistant",
    "when a tool is about to begin": "started r0c1",
    "when a tool has begun": "begin r0c1",
    "when a tool on a thread has begun": "begin r0c2",
    "when a tool has ended": "end r0c0",
    "when a tool on a thread has ended": "end r0c2",
    "when a result was written": "finished r0c1",
    "after the round": "message tool",
    "when a tool alone in its round has begun": "begin r1c0",
    "when a tool alone in its round has ended": "end r1c0",
    "when a tool of a long round is about to begin": "started r3c5",
    "when a tool of a long round has begun": "begin r3c5",
    "when a tool of a long round has ended": "end r3c5",
    "when a result of a long round was written": "finished r3c5",
    "before the last answer": "step 5",
}


class Scene(NamedTuple):
    """Where a run is stored, and how it is played."""

    place: Place
    log: Path
    """What the tools have done, line by line."""
    limit: int | None = None
    """How many tools run at a time."""
    streams: bool = False
    dies_at: str = ""
    """The moment, of `MOMENTS`, at which the process kills itself."""


def calls_of(number: int) -> list[ToolCall]:
    """The calls of the answer with that number."""
    return [
        ToolCall.create(f"r{number}c{place}", name, {"id": f"r{number}c{place}"})
        for place, name in enumerate(ROUNDS[number])
    ]


def all_calls() -> list[str]:
    """The ids of all calls of a complete run, in order."""
    return [call.id for number in range(len(ROUNDS)) for call in calls_of(number)]


# --- the run


class Player:
    """An agent whose tools record what they do, and may be killed at it."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def agent(self) -> Agent:
        """The agent; its model derives the next answer from the conversation alone."""
        return Agent(
            ScriptedModel([_answer], repeat=True),
            tools=self._tools(),
            executor=ToolExecutor(limit=self._scene.limit),
        )

    def _tools(self) -> list[Any]:
        @tool
        async def quick(id: str) -> str:
            """Ends at once."""
            self._note("begin", id)
            self._note("end", id)
            return real(id)

        @tool
        async def slow(id: str) -> str:
            """Takes a while."""
            self._note("begin", id)
            await asyncio.sleep(_PAUSE)
            self._note("end", id)
            return real(id)

        @tool
        def blocking(id: str) -> str:
            """Takes a while, on a thread."""
            self._note("begin", id)
            sleep(_PAUSE)
            self._note("end", id)
            return real(id)

        return [quick, slow, blocking]

    def _note(self, what: str, id: str) -> None:
        line = f"{what} {id}"
        file = os.open(self._scene.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, f"{line}\n".encode())
            os.fsync(file)
        finally:
            os.close(file)
        self.reach(line)

    def reach(self, moment: str) -> None:
        """Kill the process if it is time."""
        if moment and moment == self._scene.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    async def play(self, tell: Any = None) -> None:
        """Start or resume the run, until it has been answered."""
        place = self._scene.place
        async with await ChatHistory.open(place.session, storage=place.url) as history:
            self.reach("open")
            before = await history.messages()
            if is_answered(before):
                return
            prompt = () if before else ("Go.",)
            options = {"history": history}
            async with self.agent()._stream(prompt, options, streams=self._scene.streams) as stream:
                async for event in stream.events():
                    self.reach(_moment(event))
                    if tell is not None:
                        tell()


def _answer(request: Request) -> Message | str:
    number = sum(bool(message.tool_calls) for message in request.messages)
    if number == len(ROUNDS):
        return DONE
    return Message.assistant(f"Step {number}.", tool_calls=calls_of(number))


def _moment(event: AgentEvent) -> str:
    if isinstance(event, MessageAdded):
        return f"message {event.message.role.value}"
    if isinstance(event, StepStarted):
        return f"step {event.step}"
    if isinstance(event, ToolStarted):
        return f"started {event.call.id}"
    return f"finished {event.call.id}" if isinstance(event, ToolFinished) else ""


def real(id: str) -> str:
    """The return value of a tool."""
    return f"{id} is done"


def is_answered(messages: Sequence[Message]) -> bool:
    """Whether the final answer was given."""
    return bool(messages) and messages[-1].text == DONE


# --- the process

# Forked from a process with everything imported: a start takes milliseconds.
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(
    ["tests.agent.torture", "dragoman.history.storage.files", "psycopg"]
)


class Runner:
    """A process that plays a scene and reports every event."""

    def __init__(self, scene: Scene) -> None:
        self._told, telling = _processes.Pipe(duplex=False)
        self._process = _processes.Process(target=_run, args=(scene, telling))
        self._process.start()
        telling.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._process.kill()
        self._process.join()
        self._told.close()

    def wait_for(self, count: int) -> bool:
        """Wait for that many more events; False if it ended before."""
        with suppress(EOFError):
            for _ in range(count):
                self._told.recv_bytes()
            return True
        return False

    def wait_for_death(self) -> int:
        """How it ended by itself."""
        self._process.join(60)
        code = self._process.exitcode
        assert code is not None
        return code


def _run(scene: Scene, told: Connection) -> None:
    told.send_bytes(b".")
    asyncio.run(Player(scene).play(lambda: told.send_bytes(b".")))


# --- what remains


def noted(log: Path) -> Counter[str]:
    """How often each line was written."""
    return Counter(log.read_text().splitlines()) if log.exists() else Counter()


async def stored(place: Place) -> list[Message]:
    """The messages, all of which are readable."""
    async with await ChatHistory.open(place.session, storage=place.url) as history:
        messages = list(await history.messages())
        assert history.damaged == ()
    return messages


def results_in(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Each stored result: the id of its call, and its text."""
    return [(result.call_id, result.text) for m in messages for result in m.tool_results]


def check_broken(messages: Sequence[Message], lines: Counter[str]) -> None:
    """After a kill: each started call is stored, or has its result, once."""
    begun = [id for message in messages for id in begun_in(message)]
    assert len(begun) == len(set(begun))
    results = results_in(messages)
    ids = [id for id, _ in results]
    assert len(ids) == len(set(ids))
    assert all(count == 1 for count in lines.values()), lines
    for line in lines:
        what, id = line.split()
        assert what == "end" or id in ids or id in begun
    for id, text in results:
        assert text in {real(id), UNKNOWN}
        assert text == UNKNOWN or f"end {id}" in lines


def check_whole(messages: Sequence[Message], lines: Counter[str]) -> None:
    """At the end, every call has one result, there is an answer, and all dialects accept it."""
    check_broken(messages, lines)
    assert is_answered(messages)
    assert [call.id for m in messages for call in m.tool_calls] == all_calls()
    assert sorted(id for id, _ in results_in(messages)) == sorted(all_calls())
    assert [m.role for m in messages if m.role is Role.USER] == [Role.USER]
    check_on_the_wire(messages)


def check_on_the_wire(messages: Sequence[Message]) -> None:
    """Every dialect accepts the conversation with a further prompt."""
    asked = (*messages, Message.user("And now?"))
    request = Request(model="m", messages=asked, tools=_definitions(messages))
    for name in dialects():
        encoded = dialect(name).encode_request(request)
        assert dialect(name).check(encoded.body, encoded.path) == []


def _definitions(messages: Sequence[Message]) -> tuple[ToolDefinition, ...]:
    names = {call.name for message in messages for call in message.tool_calls}
    return tuple(ToolDefinition(name, "Works.", {"type": "object"}) for name in sorted(names))
