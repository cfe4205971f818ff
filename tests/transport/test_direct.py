"""The direct transport: its connections, and the bytes that it writes."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import pytest

from dragoman.errors import ConfigError, StreamInterrupted
from dragoman.errors import TimeoutError as TookTooLong
from dragoman.transport.direct import DirectTransport
from dragoman.transport.direct.response import DirectReply
from dragoman.transport.protocol import HttpRequest, Timeouts, read_body
from tests.transport.servers import Fault, Step, plain, serving

_LIMITS = Timeouts(connect=5, first_byte=5)


@pytest.mark.parametrize("more", [b"H", b"HTTP/1.1 200 OK\r\ncontent-", b"\x00garbage"])
async def test_surplus_bytes_after_a_response_are_discarded(more: bytes) -> None:
    """The connection isn't used again."""
    whole = b"".join(step for step in plain(b"one") if isinstance(step, bytes))
    first: list[Step] = [whole + more, Fault.KEEP]
    async with serving(first, plain(b"two")) as server:
        transport = DirectTransport()
        for expected in (b"one", b"two"):
            reply = await transport.open(HttpRequest(url=f"{server.url}/x", body=b"{}"), _LIMITS)
            assert await read_body(reply, 100, None) == expected
            await reply.close()
            kept = [each for idle in transport._idle.values() for each in idle if each.is_usable]
            assert len(kept) == (expected == b"two")
        await transport.close()


@pytest.mark.parametrize("value", ["a\r\nx-more: b", "\ud800", "\x00"])
async def test_an_invalid_header_is_a_config_error(value: str) -> None:
    """Before anything is sent; the value is not quoted."""
    transport = DirectTransport()
    request = HttpRequest(url="http://127.0.0.1:9/x", headers={"authorization": value}, body=b"")
    with pytest.raises(ConfigError, match="header"):
        await transport.open(request, _LIMITS)
    await transport.close()


# --- chunks that are taken as they arrive

_HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n"
_ENDING = b"0\r\n\r\n"


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


@asynccontextmanager
async def _replying(
    steps: Sequence[Step], limits: Timeouts = _LIMITS
) -> AsyncGenerator[tuple[DirectReply, DirectTransport]]:
    async with serving(list(steps)) as server:
        transport = DirectTransport()
        reply = await transport.open(HttpRequest(url=f"{server.url}/x", body=b"{}"), limits)
        assert isinstance(reply, DirectReply)
        try:
            yield reply, transport
        finally:
            await reply.close()
            await transport.close()


@pytest.mark.parametrize("is_refused", [False, True])
async def test_chunks_are_delivered_as_they_arrive(is_refused: bool) -> None:
    """In order, including those that arrive while the callback accepts none."""
    gates = [asyncio.Event() for _ in range(3)]
    steps: list[Step] = [_HEAD + b"\r\n" + _chunk(b"0")]
    for number, gate in enumerate(gates, 1):
        steps += [gate, _chunk(b"%d" % number) + _chunk(b",")]
    taken: list[bytes] = []

    def take(data: bytes) -> bool:
        taken.append(data)
        if len(gates):
            gates.pop(0).set()
        return not is_refused

    async with _replying([*steps, _ENDING, Fault.KEEP]) as (reply, transport):
        calls = 1
        while not await reply.deliver(take):
            calls += 1
            await asyncio.sleep(0.01)  # the next chunk waits
        assert b"".join(taken) == b"01,2,3,"
        assert (calls > 2) is is_refused
        assert await reply.deliver(take)  # nothing is left
        assert sum(map(len, transport._idle.values())) == 1  # the connection can be used again


async def test_an_error_of_the_callback_is_raised() -> None:
    """The event loop that called it doesn't hide it; later chunks are not delivered."""
    gate = asyncio.Event()
    taken: list[bytes] = []

    def take(data: bytes) -> bool:
        taken.append(data)
        if data.startswith(b"two"):
            raise KeyError
        gate.set()
        return True

    steps: list[Step] = [
        _HEAD + b"\r\n" + _chunk(b"one"),
        gate,
        _chunk(b"two") + _chunk(b"3"),
        Fault.HANG,
    ]
    async with _replying(steps) as (reply, _):
        with pytest.raises(KeyError):
            await reply.deliver(take)
    assert taken == [b"one", b"two3"]


async def test_chunks_that_arrive_together_are_taken_together() -> None:
    """However long they are: the connection goes on receiving."""
    gate = asyncio.Event()
    taken: list[bytes] = []

    def take(data: bytes) -> bool:
        taken.append(data)
        gate.set()
        return True

    many = b"".join(_chunk(b"%d" % number) for number in range(10))
    long = _chunk(b"x" * 1_000_000)
    steps: list[Step] = [_HEAD + b"\r\n" + _chunk(b"a"), gate, many + long, _ENDING, Fault.KEEP]
    async with _replying(steps) as (reply, _):
        assert await reply.deliver(take)
    assert taken[1].startswith(b"0123456789")
    assert b"".join(taken) == b"a0123456789" + b"x" * 1_000_000


@pytest.mark.parametrize(
    ("ending", "error"), [(Fault.CLOSE, StreamInterrupted), (Fault.HANG, TookTooLong)]
)
async def test_a_body_that_breaks_off_while_it_is_delivered(
    ending: Fault, error: type[Exception]
) -> None:
    """It is cut off or stalls; the timeout counts from the last chunk."""
    gate = asyncio.Event()

    def take(_data: bytes) -> bool:
        gate.set()
        return True

    limits = Timeouts(connect=5, first_byte=5, between_chunks=0.2)
    steps: list[Step] = [_HEAD + b"\r\n" + _chunk(b"one"), gate, _chunk(b"two"), ending]
    async with _replying(steps, limits) as (reply, _):
        with pytest.raises(error):
            await reply.deliver(take)


async def test_a_slow_body_is_no_timeout_while_it_is_delivered() -> None:
    """Its pauses are shorter than the limit, their sum is longer."""
    gates = [asyncio.Event() for _ in range(6)]
    steps: list[Step] = [_HEAD + b"\r\n" + _chunk(b"x")]
    for gate in gates:
        steps += [gate, _chunk(b"x")]
    loop, taken = asyncio.get_running_loop(), list[bytes]()

    def take(data: bytes) -> bool:
        taken.append(data)
        if gates:
            loop.call_later(0.15, gates.pop(0).set)
        return True

    limits = Timeouts(connect=5, first_byte=5, between_chunks=0.6)
    async with _replying([*steps, _ENDING, Fault.KEEP], limits) as (reply, _):
        assert await reply.deliver(take)
    assert len(taken) == 7


async def test_a_compressed_body_is_delivered_decompressed() -> None:
    """As when it is read otherwise."""
    packed = gzip.compress(b"content " * 9)
    head = _HEAD + b"content-encoding: gzip\r\n\r\n"
    taken: list[bytes] = []

    def take(data: bytes) -> bool:
        taken.append(data)
        return True

    steps: list[Step] = [head + _chunk(packed[:9]), _chunk(packed[9:]) + _ENDING, Fault.KEEP]
    async with _replying(steps) as (reply, _):
        assert await reply.deliver(take)
    assert b"".join(taken) == b"content " * 9
