"""Keeps answers on their way to the client: their end is told when it is stored."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from dragoman.gateway.upstream_task import Sink
from dragoman.model.jsontext import loads

Keep = Callable[[dict[str, Any]], Awaitable[None]]
END: Final = re.compile(rb"(?:\A|\n)event: response\.(?:completed|incomplete|failed)\r?\ndata: ")


class Keeping:
    """A sink that keeps the answer that goes through it, before the client sees its end."""

    def __init__(self, sink: Sink, keep: Keep) -> None:
        self._sink = sink
        self._keep: Keep | None = keep

    @property
    def has_begun(self) -> bool:
        """Whether the head of the answer is sent."""
        return self._sink.has_begun

    async def respond(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Keep an answer that comes in one piece."""
        await self._kept(loads(body))
        await self._sink.respond(status, headers, body)

    async def begin(self, headers: Mapping[str, str]) -> None:
        """See `Sink.begin`."""
        await self._sink.begin(headers)

    async def write(self, data: bytes) -> None:
        """Keep the answer, if this is its end."""
        await self._look(data)
        await self._sink.write(data)

    async def end(self, data: bytes = b"") -> None:
        """See `write`."""
        await self._look(data)
        await self._sink.end(data)

    async def _look(self, data: bytes) -> None:
        found = END.search(data)
        if found is not None:
            text = data[found.end() :].partition(b"\n")[0]
            await self._kept(loads(text)["response"])

    async def _kept(self, answer: dict[str, Any]) -> None:
        keep, self._keep = self._keep, None  # once, even where it fails: then the answer fails
        if keep is not None:
            await keep(answer)
