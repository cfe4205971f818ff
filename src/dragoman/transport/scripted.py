"""`ScriptedModel`: plays a script, for tests and demonstrations."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Self

import msgspec

from dragoman.errors import ConfigError, InvalidInputError, StreamInterrupted
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.events import Event
from dragoman.model.jsontext import loads
from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.usage import FinishReason
from dragoman.tracing.spans import ModelCall
from dragoman.transport.blocking import BlockingTwins
from dragoman.transport.synthetic_answers import PlayedStream, estimated_usage, request_of, spoken

_EVENTS = Event.__args__

Step = Any
"""An answer: a text, a `Message` or its input forms, a `Response`; an exception; a list of events,
ending with an exception if the stream is to break off; or a plain or async function of the request
that returns any of these."""


class ScriptedModel(BlockingTwins):
    """Answers requests from a script, in order, and records them in `requests`.

    ```python
    model = ScriptedModel(["Hello!", RateLimited("later"), lambda request: request.messages[-1]])
    ```

    A step is an answer (a text, a `Message`, tool calls, a `Response`), an exception to raise, a
    list of events (with an exception where the stream breaks off), or a plain or async function of
    the request that returns one of those. After the last step, another request raises
    `InvalidInputError`; with `repeat`, the script starts again. Usage that a step doesn't include
    is estimated, and marked as such in its extras.
    """

    def __init__(
        self, script: Iterable[Step] = (), *, name: str = "scripted:", repeat: bool = False
    ) -> None:
        if isinstance(script, (str, bytes)):
            msg = "a script must be a list of answers; for a single one write [answer]"
            raise InvalidInputError(msg)
        self._script = tuple(script)
        self._left = deque(self._script)
        self._name = name
        self._repeat = repeat
        self.requests: list[Request] = []
        """The received requests, in order."""

    @classmethod
    def from_file(cls, path: str | Path, *, repeat: bool = False) -> Self:
        """A model that plays a JSON file: a list of texts, and of messages as dicts."""
        problem = "can't be read"
        try:
            script = loads(Path(path).expanduser().read_bytes())
            if isinstance(script, list):
                return cls(script, name=f"scripted:{path}", repeat=repeat)
            problem = "is not a JSON list of answers"
        except InvalidInputError:
            problem = "is not JSON"
        except (OSError, ValueError):  # ValueError: an invalid file name
            pass
        msg = f"the script {problem}; name a JSON file, or pass script="
        raise ConfigError(msg)

    @property
    def name(self) -> str:
        """The model's name."""
        return self._name

    @property
    def remaining(self) -> int:
        """The number of steps left."""
        return len(self._left)

    def __repr__(self) -> str:
        return f"ScriptedModel({len(self._script)} steps, {self.remaining} left)"

    async def close(self) -> None:
        """Nothing is open."""

    async def send(self, request: Request | Any) -> Response:
        """The next answer. Takes a `Request`, or whatever `Messages.from_any` takes."""
        asked = request_of(request, "scripted", stream=False)
        call = ModelCall.of(asked, "scripted")
        return await (self._played(asked) if call is None else call.watched(self._played(asked)))

    async def _played(self, asked: Request) -> Response:
        heard = MessageAccumulator()
        step = await self._next(asked)
        if not _is_events(step):
            return response_of(step, asked)
        heard.extend(_raising(step, heard))
        if not heard.is_complete:
            msg = "the script's events end before the answer is complete"
            raise StreamInterrupted(msg, partial=heard.response)
        return heard.response

    def stream(self, request: Request | Any) -> PlayedStream:
        """The next answer as a stream, word by word; the step is taken when iteration starts."""
        asked = request_of(request, "scripted", stream=True)

        async def source(heard: MessageAccumulator) -> AsyncIterator[Event]:
            step = await self._next(asked)
            told = _raising(step, heard) if _is_events(step) else spoken(response_of(step, asked))
            for event in told:
                yield event

        return PlayedStream(source, partial(ModelCall.of, asked, "scripted"))

    async def _next(self, request: Request) -> Step:
        """The script's next step; raises if it is an exception."""
        self.requests.append(request)
        if not self._left and self._repeat:
            self._left.extend(self._script)
        if not self._left:
            count = len(self._script)
            msg = f"the script has ended: it has {count} steps, and this is request {count + 1}"
            raise InvalidInputError(msg)
        step = self._left.popleft()
        if _is_function(step):
            step = step(request)
            step = await step if inspect.isawaitable(step) else step
        if _is_exception(step):
            raise step
        return step


def _is_function(step: Step) -> bool:
    return callable(step) and not isinstance(step, (type, msgspec.Struct))


def _is_exception(step: Step) -> bool:
    return isinstance(step, BaseException) or (
        isinstance(step, type) and issubclass(step, BaseException)
    )


def _is_events(step: Step) -> bool:
    return isinstance(step, (list, tuple)) and any(isinstance(each, _EVENTS) for each in step)


def _raising(step: Iterable[Any], heard: MessageAccumulator) -> Iterator[Event]:
    """A step's events, up to where it breaks off."""
    for each in step:
        if not _is_exception(each):
            yield each
            continue
        if isinstance(each, StreamInterrupted) and each.partial is None:
            each.partial = heard.response
        raise each


def response_of(step: Step, request: Request) -> Response:
    """A step's answer as a response, with estimated usage unless it has its own."""
    if isinstance(step, Response):
        return step
    message = Message.from_any(step, role=Role.ASSISTANT)
    finish = message.finish or (
        FinishReason.TOOL_CALLS if message.tool_calls else FinishReason.STOP
    )
    usage = message.usage or estimated_usage(request, message)
    message = message.replace(finish=finish, usage=usage.counts)
    choice = Choice(0, message, finish, finish.value)
    return Response(choices=(choice,), usage=usage, model=request.model)
