"""Erases a user: all keys, and the append-only file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.errors import StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.protocol import Erasure
from dragoman.history.storage.redis import scripts
from dragoman.history.storage.redis.fields import identity_of
from dragoman.history.storage.redis.listing import every_head
from dragoman.history.storage.redis.repairing import ASIDES
from dragoman.history.storage.redis.server import Server

_UNKNOWN = "{} sessions or lists of records set aside with unreadable names; see `verify`"
_OUTSIDE = "backups, and unreachable replicas"


async def forget(server: Server, user: str, settings: Mapping[str, str]) -> Erasure:
    """See `Storage.forget`; also erases sessions with damaged counters."""
    sessions = messages = unknown = 0
    async for digest, fields in every_head(server):
        owner = _owner(fields.get(b"identity"))
        if owner is None:
            unknown += 1
        elif owner.user == user and owner.digest == digest:
            there, held = await server.run(scripts.DELETE, owner)
            done = server.keys.of(digest, "done")
            await server.ask(lambda done=done: server.client.unlink(done))  # type: ignore[misc]
            sessions, messages = sessions + int(there), messages + int(held)
    unknown += await _forget_aside(server, user)
    remains = [_UNKNOWN.format(unknown)] if unknown else []
    return Erasure(sessions, messages, (*remains, *await _scrub(server, settings), _OUTSIDE))


def _owner(field: bytes | None) -> SessionIdentity | None:
    try:
        return None if field is None else identity_of(field)
    except (ValueError, TypeError, msgspec.DecodeError):
        return None


async def _forget_aside(server: Server, user: str) -> int:
    """Also covers deleted sessions; returns the number of lists whose owner is unknown."""
    client, keys = server.client, server.keys
    found: Any = await server.ask(lambda: client.smembers(keys.asides))  # type: ignore[arg-type, misc, unused-ignore]
    unknown = 0
    for digest in sorted(raw.decode("ascii", "replace") for raw in found):
        aside = keys.of(digest, "aside")
        first: Any = await server.ask(lambda aside=aside: client.lindex(aside, 0))  # type: ignore[misc]
        owner = _owner(first)
        if first is not None and owner is None:
            unknown += 1
        elif owner is None or owner.user == user:
            gone = [aside, keys.of(digest, "done"), *(f"{aside}:{name}" for name in ASIDES)]
            await server.ask(lambda gone=gone: client.unlink(*gone))  # type: ignore[misc]
            await server.ask(lambda digest=digest: client.srem(keys.asides, digest))  # type: ignore[misc]
    return unknown


async def _scrub(server: Server, settings: Mapping[str, str]) -> list[str]:
    """Starts a rewrite of the append-only file; returns what may be left on the server's disk."""
    if not settings:
        return ["the server's files: it does not reveal its settings (CONFIG GET)"]
    remains: list[str] = []
    if settings.get("appendonly") == "yes":
        try:
            await server.ask(server.client.bgrewriteaof)  # type: ignore[arg-type, unused-ignore]
        except StoreError:
            remains.append("the append-only file, because it could not be rewritten (BGREWRITEAOF)")
        else:
            remains.append("the append-only file, until the server has rewritten it")
    if settings.get("save"):
        remains.append("the last snapshot (RDB), until the server creates the next one")
    return remains
