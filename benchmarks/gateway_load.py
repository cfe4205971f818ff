"""A client that asks a gateway again and again, and looks at every answer.

`python -m benchmarks.gateway_load` reads orders, a line of JSON each, and answers each with one:
how many answers were right, and when their first and last bytes came. Raw sockets: it must not be
what limits the gateway.
"""

from __future__ import annotations

import asyncio
import json
import sys
from time import perf_counter
from typing import Any

_END = b"\r\n\r\n"


class Asking(asyncio.Protocol):
    """One connection, on which requests follow each other."""

    def __init__(self, order: dict[str, Any], request: bytes, left: list[int]) -> None:
        self._expected = order["expected"].encode()
        self._ending = order["ending"].encode()
        self._request = request
        self._left = left
        self.right = self.wrong = 0
        self.first: list[float] = []
        self.last: list[float] = []
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        """Ask for the first time."""
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        if not self._left[0]:
            self._transport.close()
            return
        self._left[0] -= 1
        self._came = bytearray()
        self._is_first = True
        self._began = perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Look whether the answer is there as a whole."""
        self._came += data
        if self._is_first and _END in self._came:
            self._is_first = False
            self.first.append(perf_counter() - self._began)
        if _is_whole(self._came):
            self.last.append(perf_counter() - self._began)
            is_right = self._expected in self._came and self._ending in self._came
            self.right += is_right
            self.wrong += not is_right
            self._ask()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Nothing more will come."""
        if not self.over.done():
            self.over.set_result(None)


def _is_whole(came: bytearray) -> bool:
    if came.endswith(b"0\r\n\r\n") and b"chunked" in came[:2000].lower():
        return True
    head, blank, body = came.partition(_END)
    place = head.lower().find(b"content-length:")
    if not blank or place < 0:
        return False
    return len(body) >= int(head[place + 15 :].split(b"\r\n", 1)[0])


async def carry_out(order: dict[str, Any]) -> dict[str, Any]:
    """Ask so many times, over so many connections."""
    body = order["body"].encode()
    lines = [
        f"POST {order['path']} HTTP/1.1", f"host: 127.0.0.1:{order['port']}",
        "content-type: application/json", f"content-length: {len(body)}",
        *(f"{name}: {value}" for name, value in order["headers"].items()),
    ]  # fmt: skip
    request = "\r\n".join(lines).encode() + _END + body
    loop, left = asyncio.get_running_loop(), [order["times"]]
    made = [
        (
            await loop.create_connection(
                lambda: Asking(order, request, left), "127.0.0.1", order["port"]
            )
        )[1]
        for _ in range(order["at_once"])
    ]
    await asyncio.wait_for(asyncio.gather(*(each.over for each in made)), order.get("seconds", 900))
    first = sorted(time for each in made for time in each.first)
    last = sorted(time for each in made for time in each.last)
    return {
        "right": sum(each.right for each in made),
        "wrong": sum(each.wrong for each in made),
        "first": first[len(first) // 2] if first else None,
        "last": last[len(last) // 2] if last else None,
    }


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(asyncio.run(carry_out(json.loads(line)))), flush=True)
