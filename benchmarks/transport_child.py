"""One client, measured in a process of its own: nobody's imports, threads and garbage count twice.

`python -m benchmarks.transport_child NAME DIALECT SERVER` reads orders, a line of JSON each, and
answers each with one.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import Awaitable, Callable
from time import perf_counter, process_time
from typing import Any

from benchmarks.transport_asking import SHORT, Client
from benchmarks.transport_subjects import made


class Measured:
    """What a client costs."""

    def __init__(self, name: str, dialect: str, server: str) -> None:
        self._name, self._dialect, self._server = name, dialect, server
        self._clients: dict[str, Client] = {}

    async def send(self, messages: int, times: int) -> float:
        """CPU seconds for one request and its answer."""
        client = self._client(1, 0)
        start = process_time()
        for _ in range(times):
            await client.send(messages)
        return (process_time() - start) / times

    async def stream(self, pieces: int, pause: int, at_once: int, times: int) -> float:
        """CPU seconds for one stream, of several that go on at once."""
        client = self._client(pieces, pause)
        start = process_time()
        for _ in range(times):
            await asyncio.gather(*(_listened(client) for _ in range(at_once)))
        return (process_time() - start) / (times * at_once)

    async def first(self, pieces: int, pause: int, times: int) -> list[float]:
        """Seconds from asking to the first text, each time."""
        client = self._client(pieces, pause)
        return [await _until_text(client) for _ in range(times)]

    async def crowd(self, pieces: int, pause: int, at_once: int) -> int:
        """Blocks of memory in use after a round of streams that were all open at once.

        Each waits for the others after its first event.
        """
        client = self._client(pieces, pause)
        meeting = asyncio.Barrier(at_once)
        await asyncio.gather(*(_met(client, meeting) for _ in range(at_once)))
        gc.collect()
        return sys.getallocatedblocks()

    async def close(self) -> None:
        """Close the connections, where somebody would complain if nobody did."""
        for client in self._clients.values():
            if client.close is not None:
                await client.close()

    def _client(self, pieces: int, pause: int) -> Client:
        address = f"{self._server}/{pieces}/{pause}"
        client = self._clients.get(address)
        if client is None:
            client = self._clients[address] = made(self._name, self._dialect, address)
        return client


async def _listened(client: Client) -> int:
    count = 0
    async with client.stream(SHORT) as events:
        async for _ in events:
            count += 1
    return count


async def _until_text(client: Client) -> float:
    first, is_text, start = 0.0, client.is_text, perf_counter()
    async with client.stream(SHORT) as events:
        async for event in events:
            if not first and is_text(event):
                first = perf_counter() - start
    return first


async def _met(client: Client, meeting: asyncio.Barrier) -> None:
    is_first = True
    async with client.stream(SHORT) as events:
        async for _ in events:
            if is_first:
                is_first = False
                await meeting.wait()


async def main(name: str, dialect: str, server: str) -> None:
    """Do as ordered, until there are no more orders."""
    measured = Measured(name, dialect, server)
    orders: dict[str, Callable[..., Awaitable[Any]]] = {
        "send": measured.send,
        "stream": measured.stream,
        "first": measured.first,
        "crowd": measured.crowd,
    }
    gc.collect()
    gc.freeze()  # what imports have left behind is no part of the work
    for line in sys.stdin:
        what, *arguments = json.loads(line)
        print(json.dumps(await orders[what](*arguments)), flush=True)
    await measured.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
