"""Erasing a user: all keys, and the append-only file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.errors import StoreError
from dragoman.history.storage.protocol import Erasure, Filter
from dragoman.history.storage.redis import scripts
from dragoman.history.storage.redis.fields import identity_of
from dragoman.history.storage.redis.listing import each
from dragoman.history.storage.redis.server import Server

_OUTSIDE = "backups, and replicas that are out of reach"


async def forget(server: Server, user: str, settings: Mapping[str, str]) -> Erasure:
    """See `Storage.forget`."""
    sessions = messages = 0
    async for session in each(server, Filter(user=user)):
        there, held = await server.run(scripts.DELETE, session.identity)
        sessions, messages = sessions + int(there), messages + int(held)
    await _forget_aside(server, user)
    return Erasure(sessions, messages, (*await _scrub(server, settings), _OUTSIDE))


async def _forget_aside(server: Server, user: str) -> None:
    """Also of sessions that are there no more."""
    client, keys = server.client, server.keys
    found: Any = await server.ask(lambda: client.smembers(keys.asides))  # type: ignore[arg-type, misc, unused-ignore]
    for digest in sorted(raw.decode() for raw in found):
        aside = keys.of(digest, "aside")
        owner: Any = await server.ask(lambda aside=aside: client.lindex(aside, 0))  # type: ignore[misc]
        if owner is None or identity_of(owner).user == user:
            await server.once(lambda aside=aside: client.unlink(aside))  # type: ignore[misc]
            await server.once(lambda digest=digest: client.srem(keys.asides, digest))  # type: ignore[misc]


async def _scrub(server: Server, settings: Mapping[str, str]) -> list[str]:
    """Have the append-only file written anew; says what may be left on the server's disk."""
    if not settings:
        return ["the server's files: it does not tell its settings (CONFIG GET)"]
    remains: list[str] = []
    if settings.get("appendonly") == "yes":
        try:
            await server.once(server.client.bgrewriteaof)  # type: ignore[arg-type, unused-ignore]
        except StoreError:
            remains.append("the append-only file: it could not be written anew (BGREWRITEAOF)")
        else:
            remains.append("the append-only file, until the server has written it anew")
    if settings.get("save"):
        remains.append("the last snapshot (RDB), until the server makes the next one")
    return remains
