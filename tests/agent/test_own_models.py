"""Models of people's own: what they must have, and what is said where they have it not."""

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
    """A model with what the protocols list, and nothing else."""

    __slots__ = ()
    name = "mine:minimal"

    async def send(self, request: Request) -> Response:
        """The same as ever."""
        return await ScriptedModel(["Hello."]).send(request)

    def stream(self, request: Request) -> ModelStream:
        """The same, as it comes."""
        return MinimalStream(ScriptedModel(["Hello."]).stream(request))

    async def close(self) -> None:
        """Nothing is open."""


class MinimalStream:
    """A stream with what the protocol lists, and nothing else."""

    __slots__ = ("_stream",)

    def __init__(self, stream: ModelStream) -> None:
        self._stream = stream

    @property
    def response(self) -> Response:
        """What has arrived."""
        return self._stream.response

    @property
    def is_complete(self) -> bool:
        """Whether that is all."""
        return self._stream.is_complete

    async def close(self) -> None:
        """Stop listening."""
        await self._stream.close()

    def __aiter__(self) -> AsyncIterator[Event]:
        return aiter(self._stream)


async def test_a_model_needs_what_the_protocol_lists() -> None:
    """Whole answers, streams, chats and typed outputs: nothing else is asked of it."""
    agent = Agent(Minimal())
    assert (await agent.send("Hi")).output == "Hello."
    assert (await agent.stream("Hi").collect()).output == "Hello."
    assert (await agent.chat().send("Hi")).output == "Hello."
    with pytest.raises(LimitExceeded):
        await agent.send("Hi", output=int)
    await agent.close()


@pytest.mark.parametrize("missing", ["name", "send", "stream", "close"])
@pytest.mark.parametrize("is_there", [True, False], ids=["none", "absent"])
def test_a_model_says_what_it_lacks(missing: str, is_there: bool) -> None:
    """By name; a method that is None is none."""
    members = {name: getattr(Minimal, name) for name in ("name", "send", "stream", "close")}
    members[missing] = None
    if not is_there:
        del members[missing]
    half: Any = type("Half", (), members)()
    with pytest.raises(InvalidInputError, match=missing):
        open_model(half)
    with pytest.raises(InvalidInputError, match=missing):
        Agent(half)


def test_what_is_no_model_at_all_is_told_what_one_has() -> None:
    """All four by name, where there is none of them."""
    with pytest.raises(InvalidInputError, match="name, send, stream, close"):
        Agent(object())  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]


class Blunt(Minimal):
    """A model whose `send` is not async."""

    def send(self, request: Request) -> Any:
        """No coroutine."""
        return Response(model=request.model)


class Generating(Minimal):
    """A model whose `stream` is an async generator: it has no response, and no `close`."""

    async def stream(self, request: Request) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Events, and nothing around them."""
        async for event in ScriptedModel(["Hello."]).stream(request):
            yield event


class Awaiting(Minimal):
    """A model whose `stream` has to be awaited."""

    async def stream(self, request: Request) -> Any:  # type: ignore[override]
        """Too late."""
        return Minimal().stream(request)


async def test_a_send_that_is_not_async_is_told_so() -> None:
    """And not that some object can't be awaited."""
    with pytest.raises(InvalidInputError, match=r"Blunt\.send must be async"):
        await Agent(Blunt()).send("Hi")


@pytest.mark.parametrize("model", [Generating(), Awaiting()])
async def test_a_stream_that_is_none_says_what_it_lacks(model: Model) -> None:
    """By name, before anything else goes wrong."""
    with pytest.raises(InvalidInputError, match=r"stream has no.* response, .*close"):
        await Agent(model).stream("Hi").collect()
