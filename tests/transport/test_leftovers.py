"""What a client's requests leave behind in memory: nothing, without the garbage collector."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from dragoman.transport.client import Client
from tests.leftovers import leftovers
from tests.transport.answers import DIALECTS, body, client, frames
from tests.transport.servers import plain, serving, streamed

pytestmark = pytest.mark.usefixtures("network")


async def sent(made: Client) -> None:
    """A whole response."""
    await made.send("hi")


async def collected(made: Client) -> None:
    """A stream, collected."""
    await made.stream("hi").collect()


async def bare(made: Client) -> None:
    """A stream that is read to its end, and not closed."""
    async for _ in made.stream("hi"):
        pass


async def left(made: Client) -> None:
    """A stream that its reader leaves."""
    async with made.stream("hi") as stream:
        await anext(stream)


@pytest.mark.parametrize("play", [sent, collected, bare, left])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_responses_are_freed_at_once(
    dialect: str, play: Callable[[Client], Awaitable[None]]
) -> None:
    """Of every dialect, however they are read."""
    reply = plain(body(dialect)) if play is sent else streamed(*frames(dialect))
    async with serving(reply) as server, client(dialect, server.url) as made:
        await play(made)
        with leftovers() as found:
            await play(made)
            await asyncio.sleep(0)
    assert not found
