"""A scripted model behind the gateway that does a coding agent's task, in any dialect.

Asked with the agent's tools it reads two files at once, writes a third with what it has read, and
then says what was in them: each step needs what the steps before brought back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from aiohttp import web

from dragoman import ToolResult
from dragoman.model.events import PartDelta, PartStart, PartStop
from dragoman.model.messages import Message
from dragoman.model.parts import Origin, Text, Thinking
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.tool_calls import ToolCall
from dragoman.model.usage import FinishReason
from dragoman.transport.answers import events_of
from dragoman.wire.dialect import dialect
from dragoman.wire.front import Front
from tests.gateway.answers import body_of, is_streaming, said

SEALED = "U2VhbGVkIGJ5IHRoZSBtb2RlbA=="
"""What only the model's provider can read; it has to come back."""
OPENING = "The notes say:"
_MOST = 10
_WORDS = re.compile(r"word-[a-z]+")
_SEALING = frozenset({"anthropic", "gemini", "openai-responses"})


class Step(NamedTuple):
    """What a tool is called with."""

    tool: str
    input: dict[str, str]


class Plan(NamedTuple):
    """The task, in the words of one agent's tools."""

    read: tuple[Step, Step]
    write: Step
    """Its arguments have `{words}` where the words belong that were read."""


class Coder:
    """Answers every request to it, and keeps what it was asked."""

    def __init__(self, name: str, plan: Plan, *, cuts: int = 0) -> None:
        """`cuts`: how many last answers break off before they are complete."""
        self.name = name
        self.plan = plan
        self.cuts = cuts
        self.requests: list[Request] = []
        """Those that had tools: the task's."""
        self.others: list[str] = []
        """Paths of the other requests: titles, counts, lists."""
        self.bodies: list[str] = []
        """All that it was sent, but counts and lists."""
        self.problems: list[str] = []
        """Errors that the provider would have refused a request for."""
        self.seen: set[str] = set()
        """Words that came in the results of tools."""

    @property
    def is_replayed(self) -> bool:
        """Whether sealed state came back with each later request, where the model gave any."""
        later = [body for body in self.bodies[1:] if self.plan.write.tool in body]
        return self.name not in _SEALING or all(SEALED in body for body in later)

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Answer."""
        text = await request.text()
        body = json.loads(text or "{}")
        if "ount" in request.path.rpartition("/")[2]:
            self.others.append(request.path)
            return web.json_response({"input_tokens": 7, "totalTokens": 7})
        if request.method == "GET":
            self.others.append(request.path)
            return web.json_response({"data": [], "models": []})
        response, is_cut = self._reply(body, request.path_qs)
        if not is_streaming(self.name, request, body):
            if is_cut and request.transport is not None:  # Claude Code asks so after a cut stream
                request.transport.close()
            raw = body_of(self.name, response)
            return web.Response(body=raw, content_type="application/json")
        return await self._stream(request, self._frames(response, body), is_cut=is_cut)

    # --- what it says

    def _reply(self, body: Any, path: str) -> tuple[Response, bool]:
        own = dialect(self.name)
        asked = own.decode_request(body, path=path)
        found = own.check(body, path=path)
        self.problems += [
            f"{each.rule} {each.path}: {each.message}" for each in found if each.severity == "error"
        ]
        self.bodies.append(json.dumps(body))
        if self.plan.write.tool not in {tool.name for tool in asked.tools}:
            self.others.append(path)
            return said(Text("Notes"), id="answer_0"), False
        self.requests.append(asked)
        assert len(self.requests) < _MOST, "the agent goes in circles"
        return self._step(asked)

    def _step(self, asked: Request) -> tuple[Response, bool]:
        words = self._words(asked.messages)
        match sum(bool(message.tool_calls) for message in asked.messages):
            case 0:
                calls = [self._call(asked, step, n) for n, step in enumerate(self.plan.read)]
                first = (*self._thought(), Text("I read both."), *calls)
                return self._said(*first, finish=FinishReason.TOOL_CALLS), False
            case 1:
                call = self._call(asked, self.plan.write, 2, words=words)
                return self._said(*self._thought(), call, finish=FinishReason.TOOL_CALLS), False
            case _:
                is_cut, self.cuts = self.cuts > 0, self.cuts - 1
                # Gemini signs a streamed text in a part of its own.
                signed = (Text("", signature=SEALED),) if self.name == "gemini" else ()
                return self._said(Text(f"{OPENING} {words}"), *signed), is_cut

    def _said(self, *parts: Any, finish: FinishReason = FinishReason.STOP) -> Response:
        # Claude Code takes answers of one id for one message.
        asked = self.requests[-1].model  # whose thinking it is, is told by it
        return said(*parts, finish=finish, id=f"answer_{len(self.requests)}", model=asked)

    def _thought(self) -> tuple[Thinking, ...]:
        if self.name not in _SEALING:
            return ()
        if self.name == "openai-responses":
            here = Origin(dialect=self.name)
            id = f"rs_{len(self.requests)}"
            return (Thinking("Both.", SEALED, "summary", item_id=id, origin=here),)
        return (Thinking("Both.", signature=SEALED),)

    def _words(self, messages: Sequence[Message]) -> str:
        results = [
            part for message in messages for part in message.parts if isinstance(part, ToolResult)
        ]
        self.seen |= set(_WORDS.findall(" ".join(result.text for result in results)))
        return " ".join(sorted(self.seen))

    def _call(self, asked: Request, step: Step, number: int, words: str = "") -> ToolCall:
        given = {name: value.replace("{words}", words) for name, value in step.input.items()}
        id = f"call_{number}"
        tool = next(tool for tool in asked.tools if tool.name == step.tool)
        if getattr(tool, "kind", "function") == "custom":
            return ToolCall(id, step.tool, str(*given.values()), kind="custom")
        return ToolCall(id, step.tool, json.dumps(given))

    # --- how it says it

    def _frames(self, response: Response, body: Any) -> list[bytes]:
        path = "/v1beta/models/m:streamGenerateContent?alt=sse" if self.name == "gemini" else None
        request = dialect(self.name).decode_request(body, path=path)
        encoder = Front(self.name, request, path=path).stream()
        frames = [encoder.feed(event) for event in _in_pieces(response)]
        return [frame for frame in (*frames, encoder.close()) if frame]

    async def _stream(
        self, request: web.Request, frames: list[bytes], *, is_cut: bool
    ) -> web.StreamResponse:
        kind = "application/x-ndjson" if self.name == "ollama" else "text/event-stream"
        reply = web.StreamResponse(headers={"content-type": kind})
        await reply.prepare(request)
        for frame in frames:
            await reply.write(frame)
            if is_cut and OPENING.encode() in frame:
                assert request.transport is not None
                request.transport.close()
                return reply
        await reply.write_eof()
        return reply


def _in_pieces(response: Response) -> list[Any]:
    """The events of an answer, its texts and arguments piece by piece."""
    events: list[Any] = []
    for event in events_of(response):
        match event:
            case PartStart(index=index, part=Text(text=text, signature=None)):
                middle = text.find(" ", len(OPENING)) + 1
                pieces = (text[:middle], text[middle:])
                events.append(PartStart(index, Text("")))
                events += [PartDelta(index, piece) for piece in pieces if piece]
            case PartStart(index=index, part=ToolCall(raw=str() as raw) as call):
                events.append(PartStart(index, call.replace_unchecked(raw="")))
                events += [PartDelta(index, raw[:9]), PartDelta(index, raw[9:])]
            case PartStop(index=index):
                events.append(PartStop(index, choice=event.choice))
            case _:
                events.append(event)
    return events
