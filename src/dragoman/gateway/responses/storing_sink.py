"""Stores responses on their way to the client, before the client sees the end."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from dragoman.gateway.upstream_task import Sink
from dragoman.model.jsontext import loads

Keep = Callable[[dict[str, Any], int], Awaitable[None]]
"""Takes a response and its size in bytes."""
END: Final = re.compile(rb"(?:\A|\n)event: response\.(?:completed|incomplete|failed)\r?\ndata: ")


class StoringSink:
    """A sink that stores the response before it passes the end on."""

    def __init__(self, sink: Sink, keep: Keep) -> None:
        self._sink = sink
        self._keep: Keep | None = keep

    @property
    def has_begun(self) -> bool:
        """Whether the response headers have been sent."""
        return self._sink.has_begun

    async def respond(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Stores a response that is not streamed."""
        await self._kept(body)
        await self._sink.respond(status, headers, body)

    async def begin(self, headers: Mapping[str, str]) -> None:
        """See `Sink.begin`."""
        await self._sink.begin(headers)

    async def write(self, data: bytes) -> None:
        """Stores the response if this data contains its end."""
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
            await self._kept(text, "response")

    async def _kept(self, text: bytes, field: str | None = None) -> None:
        keep, self._keep = self._keep, None  # only once; if storing fails, the response fails
        if keep is not None:
            answer = loads(text)
            await keep(answer if field is None else answer[field], len(text))
