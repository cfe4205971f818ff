"""One model on loopback with given answers that validates its requests."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

import dragoman
from dragoman import Message, ToolCall
from dragoman.model.requests import Request
from dragoman.model.responses import Choice, Response
from dragoman.model.usage import FinishReason
from dragoman.transport.client import Client
from dragoman.wire.target import Target
from tests.agent.frames import frames, kind
from tests.agent.loopback import client, judged, read
from tests.agent.scripts import call
from tests.agent.spoken import Body
from tests.transport.servers import Seen, Step, plain, serving, streamed


class Inspector:
    """Decodes requests as their receiver does, and records what it would reject."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self.target: Target | None = None
        self.raw: list[Body] = []
        self.requests: list[Request] = []
        self.faults: list[str] = []

    def read(self, seen: Seen) -> Request:
        """The request that arrived."""
        request = read(self.dialect, seen.json, seen.path)
        self.raw.append(seen.json)
        self.requests.append(request)
        try:
            judged(self.dialect, seen.json)
        except Exception as error:  # noqa: BLE001 - a test shows it, whatever it is
            self.faults.append(str(error))
        found = dragoman.dialect(self.dialect).check(seen.json, seen.path, target=self.target)
        self.faults += [f"{e.rule} {e.path}" for e in found if e.severity == "error"]
        return request

    def spoken(self, seen: Seen, body: Body) -> list[Step]:
        """An answer, plain or streamed as requested."""
        if seen.json.get("stream") or ":stream" in seen.path:
            return streamed(*frames(self.dialect, body), kind=kind(self.dialect))
        return plain(body)


class Vendor(Protocol):
    """A model."""

    dialect: str
    target: Target | None

    def answer(self, seen: Seen) -> Sequence[Step]:
        """Its answer."""
        ...


class InTurn(Inspector):
    """Gives one answer after the other: bodies or raw steps."""

    def __init__(self, dialect: str, *answers: Body | Sequence[Step]) -> None:
        super().__init__(dialect)
        self._answers = list(answers)

    def answer(self, seen: Seen) -> Sequence[Step]:
        """The next answer."""
        self.read(seen)
        said = self._answers.pop(0)
        return self.spoken(seen, said) if isinstance(said, dict) else said


class Obedient(Inspector):
    """Obedient: runs the tools that it has, then gives the value in the requested form."""

    def __init__(self, dialect: str, value: Any = None, misfits: int = 0) -> None:
        super().__init__(dialect)
        self._value = value
        self._misfits = misfits  # how often it gives something else first

    def answer(self, seen: Seen) -> Sequence[Step]:
        """Answer the request."""
        message = self.said(self.read(seen))
        return self.spoken(seen, encoded(self.dialect, message, len(self.requests)))

    def said(self, request: Request) -> Message:
        """Calls of the tools first, once; then the value."""
        tools = {tool.name: tool for tool in request.tools}
        is_done = any(message.tool_results for message in request.messages)
        if "weather" in tools and not is_done:
            calls = [call("weather", "call_1", city="Basel"), call("clock", "call_2", city="B")]
            return Message.assistant("One moment.", tool_calls=calls)
        if "return_result" in tools:
            given = self._given(getattr(tools["return_result"], "parameters", {}))
            made = ToolCall.create(f"call_r{len(self.requests)}", "return_result", given)
            return Message.assistant(tool_calls=[made])
        if request.output is not None and request.output.format == "schema":
            return Message.assistant(json.dumps(self._given(request.output.schema)))
        return Message.assistant("It is three degrees.")

    def _given(self, schema: Any) -> Any:
        if self._misfits:
            self._misfits -= 1
            return {"nonsense": True}
        is_wrapped = "result" in schema.get("properties", {})
        return {"result": self._value} if is_wrapped else self._value


def encoded(dialect: str, message: Message, number: int = 1) -> Body:
    """A message as the body of an answer."""
    finish = FinishReason.TOOL_CALLS if message.tool_calls else FinishReason.STOP
    response = Response(id=f"r{number}", model="m", choices=(Choice(0, message, finish),))
    body = dragoman.dialect(dialect).encode_response(response).body
    found: Body = json.loads(json.dumps(body, default=dict))
    return found


@asynccontextmanager
async def speaking(vendor: Vendor, model: str) -> AsyncGenerator[Client]:
    """A client of that model while the block runs."""
    async with (
        serving(vendor.answer) as server,
        client(model, server.url, vendor.dialect) as made,
    ):
        vendor.target = made.target
        yield made
