"""Custom models: the required methods, and the errors if one is missing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from dragoman import Agent, Model, Request, Response
from dragoman.errors import InvalidInputError, LimitExceeded
from dragoman.events import Event
from dragoman.testing import ScriptedModel
from dragoman.transport.model import ModelStream, open_model


class Minimal:
    """A model with the protocol's methods, and nothing else."""

    __slots__ = ()
    name = "mine:minimal"

    async def send(self, request: Request) -> Response:
        """Always the same answer."""
        return await ScriptedModel(["Hello."]).send(request)

    def stream(self, request: Request) -> ModelStream:
        """The same answer, streamed."""
        return MinimalStream(ScriptedModel(["Hello."]).stream(request))

    async def close(self) -> None:
        """Nothing is open."""


class MinimalStream:
    """A stream with the protocol's methods, and nothing else."""

    __slots__ = ("_stream",)

    def __init__(self, stream: ModelStream) -> None:
        self._stream = stream

    @property
    def response(self) -> Response:
        """The response so far."""
        return self._stream.response

    @property
    def is_complete(self) -> bool:
        """Whether the response is complete."""
        return self._stream.is_complete

    async def close(self) -> None:
        """Stop reading."""
        await self._stream.close()

    def __aiter__(self) -> AsyncIterator[Event]:
        return aiter(self._stream)


async def test_a_model_needs_only_the_protocol() -> None:
    """Answers, streams, chats and typed outputs need no other method."""
    agent = Agent(Minimal())
    assert (await agent.send("Hi")).output == "Hello."
    assert (await agent.stream("Hi").collect()).output == "Hello."
    assert (await agent.chat().send("Hi")).output == "Hello."
    with pytest.raises(LimitExceeded):
        await agent.send("Hi", output=int)
    await agent.close()


@pytest.mark.parametrize("missing", ["name", "send", "stream", "close"])
@pytest.mark.parametrize("is_there", [True, False], ids=["none", "absent"])
def test_missing_methods_are_named(missing: str, is_there: bool) -> None:
    """A method that is None counts as missing."""
    members = {name: getattr(Minimal, name) for name in ("name", "send", "stream", "close")}
    members[missing] = None
    if not is_there:
        del members[missing]
    half: Any = type("Half", (), members)()
    with pytest.raises(InvalidInputError, match=missing):
        open_model(half)
    with pytest.raises(InvalidInputError, match=missing):
        Agent(half)


def test_an_object_without_any_method_gets_the_whole_list() -> None:
    """All four names are listed."""
    with pytest.raises(InvalidInputError, match="name, send, stream, close"):
        Agent(object())  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]


class Blunt(Minimal):
    """A model whose `send` is not async."""

    def send(self, request: Request) -> Any:
        """Not a coroutine."""
        return Response(model=request.model)


class Generating(Minimal):
    """A model whose `stream` is an async generator: it has no response, and no `close`."""

    async def stream(self, request: Request) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Events without a stream object."""
        async for event in ScriptedModel(["Hello."]).stream(request):
            yield event


class Awaiting(Minimal):
    """A model whose `stream` has to be awaited."""

    async def stream(self, request: Request) -> Any:  # type: ignore[override]
        """A coroutine function by mistake."""
        return Minimal().stream(request)


async def test_a_send_that_is_not_async_is_explained() -> None:
    """The error isn't that some object can't be awaited."""
    with pytest.raises(InvalidInputError, match=r"Blunt\.send must be async"):
        await Agent(Blunt()).send("Hi")


@pytest.mark.parametrize("model", [Generating(), Awaiting()])
async def test_an_invalid_stream_has_its_missing_methods_named(model: Model) -> None:
    """Before anything else goes wrong."""
    with pytest.raises(InvalidInputError, match=r"stream has no.* response, .*close"):
        await Agent(model).stream("Hi").collect()
