"""The clients that are measured, each on one dialect: ours, aiohttp alone, and the others.

Conversations are made beforehand, in each one's own types: what is measured is the asking.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from benchmarks import transport_peers as peers
from benchmarks.transport_asking import ANTHROPIC, CHAT, LIMIT, MODELS, Client, by_size


def made(name: str, dialect: str, address: str) -> Client:
    """The client of that name, for a server at that address."""
    return _MAKERS[name](dialect, address)


# --- Dragoman


def _dragoman(dialect: str, address: str) -> Client:
    from dragoman import Messages, Request
    from dragoman.model.events import PartDelta, PartStart
    from dragoman.model.parts import Text
    from dragoman.model.requests import Sampling
    from dragoman.transport.client import Client as Ours

    provider, base = ("openai", "/v1") if dialect == CHAT else ("anthropic", "")
    client = Ours(f"{provider}:{MODELS[dialect]}", key="none", base_url=address + base)
    sampling = Sampling(max_tokens=LIMIT)

    def is_text(event: Any) -> bool:
        if isinstance(event, PartStart):  # Chat's begin with text, Anthropic's without
            return isinstance(event.part, Text) and bool(event.part.text)
        return isinstance(event, PartDelta)

    requests = by_size(
        lambda told: Request(messages=tuple(Messages.from_any(told)), sampling=sampling)
    )
    return Client(
        lambda size: client.send(requests[size]),
        lambda size: client.stream(requests[size]),
        is_text,
        client.close,
    )


# --- aiohttp: the floor, and what one would write by hand


def _posting(
    dialect: str, address: str
) -> tuple[Callable[..., Any], Callable[[], Awaitable[None]]]:
    """What posts a body, and what closes it all."""
    import aiohttp

    sessions: list[aiohttp.ClientSession] = []
    url = address + ("/v1/chat/completions" if dialect == CHAT else "/v1/messages")
    headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}

    def post(body: bytes) -> Any:
        if not sessions:  # it wants a loop
            sessions.append(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        return sessions[0].post(url, data=body, headers=headers)

    async def close() -> None:
        for session in sessions:
            await session.close()

    return post, close


def _bodies(dialect: str, *, stream: bool) -> dict[int, dict[str, Any]]:
    rest = {"model": MODELS[dialect], "max_tokens": LIMIT} | ({"stream": True} if stream else {})
    return by_size(lambda told: {"messages": told, **rest})


def _raw(dialect: str, address: str) -> Client:
    import msgspec

    post, close = _posting(dialect, address)
    encode = msgspec.json.encode
    plain = {size: encode(body) for size, body in _bodies(dialect, stream=False).items()}
    streamed = {size: encode(body) for size, body in _bodies(dialect, stream=True).items()}

    async def send(size: int) -> None:
        async with post(plain[size]) as response:
            await response.read()

    @asynccontextmanager
    async def stream(size: int) -> AsyncGenerator[AsyncIterable[Any]]:
        async with post(streamed[size]) as response:
            yield response.content.iter_any()

    return Client(send, stream, lambda _piece: True, close)


def _by_hand(dialect: str, address: str) -> Client:
    import json

    post, close = _posting(dialect, address)
    plain, streamed = _bodies(dialect, stream=False), _bodies(dialect, stream=True)

    async def send(size: int) -> None:
        async with post(json.dumps(plain[size]).encode()) as response:
            await response.json()

    async def events(response: Any) -> AsyncGenerator[Any]:
        async for line in response.content:
            if line.startswith(b"data: {"):
                yield json.loads(line[6:])

    @asynccontextmanager
    async def stream(size: int) -> AsyncGenerator[AsyncIterable[Any]]:
        async with post(json.dumps(streamed[size]).encode()) as response:
            yield events(response)

    return Client(send, stream, lambda event: "bridge" in str(event), close)


RAW, BY_HAND, OURS = "aiohttp, bytes only", "aiohttp and json, by hand", "dragoman"
_MAKERS: dict[str, Callable[[str, str], Client]] = {
    RAW: _raw,
    BY_HAND: _by_hand,
    OURS: _dragoman,
    "openai": peers.openai_sdk,
    "anthropic": peers.anthropic_sdk,
    "anthropic, added up": peers.anthropic_added_up,
    "litellm": peers.through_litellm,
    "pydantic-ai": peers.through_pydantic_ai,
}
SUBJECTS = {
    dialect: tuple(name for name in _MAKERS if not name.startswith(other))
    for dialect, other in ((CHAT, "anthropic"), (ANTHROPIC, "openai"))
}
"""Who speaks a dialect."""
