"""`EchoModel`: repeats its input, for trying things out without a key or a network."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.events import Event, PartDelta
from dragoman.model.ids import new_id
from dragoman.model.messages import make_message
from dragoman.model.parts import Origin, Text
from dragoman.model.requests import Request
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, make_call
from dragoman.model.usage import FinishReason
from dragoman.tracing.spans import ModelCall
from dragoman.transport.blocking import BlockingTwins
from dragoman.transport.synthetic_answers import (
    PlayedStream,
    estimated_usage,
    request_of,
    spoken,
    words,
)

_CALL = re.compile(r"/tool[ \t]+(\S+)[ \t]*(.*)")


class EchoModel(BlockingTwins):
    """Repeats the last message: the user's text, or the tool results.

    ```python
    async with EchoModel() as model:
        response = await model.send("Hello!")      # "Hello!"
    ```

    A line `/tool weather {"city": "Basel"}` becomes a call to that tool; invalid arguments are kept
    as they are, since models write those too. `Sampling.max_tokens` counts words: a longer answer
    is cut off. Streams come word by word, `pause` seconds apart. Usage is an estimate, and marked
    as such in its extras.
    """

    def __init__(self, variant: str = "", *, pause: float = 0.0) -> None:
        self._variant = variant
        self._pause = pause

    @property
    def name(self) -> str:
        """The model's name."""
        return f"echo:{self._variant}"

    def __repr__(self) -> str:
        return f"EchoModel({self.name})"

    async def close(self) -> None:
        """Nothing is open."""

    async def send(self, request: Request | Any) -> Response:
        """The echo. Takes a `Request`, or whatever `Messages.from_any` takes."""
        asked = request_of(request, self._model, stream=False)
        call = ModelCall.of(asked, "echo")
        response = self._answer(asked)
        if call is not None:
            call.answered(response)
        return response

    def stream(self, request: Request | Any) -> PlayedStream:
        """The echo, word by word."""
        asked = request_of(request, self._model, stream=True)

        async def source(_heard: MessageAccumulator) -> AsyncIterator[Event]:
            for event in spoken(self._answer(asked)):
                if self._pause and isinstance(event, PartDelta):
                    await asyncio.sleep(self._pause)
                yield event

        return PlayedStream(source, partial(ModelCall.of, asked, "echo"))

    @property
    def _model(self) -> str:
        return self._variant or "echo"

    def _answer(self, request: Request) -> Response:
        text, calls = _heard(request)
        said, is_cut_off = _cut(text, request.sampling.max_tokens)
        parts = [Text(said)] if said or not calls else []
        finish = FinishReason.TOOL_CALLS if calls else FinishReason.STOP
        if is_cut_off:
            calls, finish = [], FinishReason.LENGTH
        origin = Origin(dialect="echo", provider="echo", model=request.model)
        message = make_message(Role.ASSISTANT, (*parts, *calls), origin=origin, finish=finish)
        usage = estimated_usage(request, message)
        message = message.replace(usage=usage.counts)
        return Response(
            choices=(Choice(0, message, finish, finish.value),),
            usage=usage,
            model=request.model,
            id=new_id("echo_"),
        )


def _heard(request: Request) -> tuple[str, list[ToolCall]]:
    """The text to repeat, and the tools to call."""
    if request.messages and (results := request.messages[-1].tool_results):
        return "\n".join(result.text for result in results), []
    users = [message for message in request.messages if message.role is Role.USER]
    lines = (users[-1].text if users else "").split("\n")
    calls = [found for line in lines if (found := _CALL.fullmatch(line))]
    said = "\n".join(line for line in lines if not _CALL.fullmatch(line))
    return said, [make_call(new_id("call_"), call[1], raw=call[2] or "{}") for call in calls]


def _cut(text: str, most: int | None) -> tuple[str, bool]:
    """The text, truncated to `most` words, and whether it was truncated."""
    pieces = words(text)
    if most is None or len(text.split()) <= most:
        return text, False
    return "".join(pieces[:most]), True
