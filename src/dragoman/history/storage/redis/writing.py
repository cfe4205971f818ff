"""Writes to one session: each write is a script, which the server recognises by a token."""

from __future__ import annotations

import re
from collections.abc import Sequence
from secrets import token_hex
from time import time

from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.integrity import protected
from dragoman.history.storage.plausibility import are_readable
from dragoman.history.storage.protocol import Appended, Entry, Row, Seal, Session
from dragoman.history.storage.redis import repairing, scripts
from dragoman.history.storage.redis.fields import (
    fields_of,
    halves,
    identity_field,
    placed_rows,
)
from dragoman.history.storage.redis.server import (
    Expected,
    Lost,
    Server,
    checked,
    seal_argument,
)

_VERSION = re.compile(
    rb'\{"dragoman":\d+,"kind":"Record","value":\{"seq":(\d+),.*?,"version":(\d+),', re.DOTALL
)


async def append(
    server: Server,
    identity: SessionIdentity,
    entries: Sequence[Entry],
    branch: int,
    expected: int | None,
    seal: Seal,
) -> Appended:
    """See `Storage.append`. If the connection breaks, finds out whether it succeeded."""
    parts = [halves(entry) for entry in entries]
    times = (repr(entries[0].at), repr(entries[-1].at))
    values = [identity_field(identity), Expected.of(expected), branch, *times]
    flat = [seal_argument(seal), *(value for part in parts for value in part)]
    call = server.prepared(scripts.APPEND, identity, token_hex(8), *values, *flat)
    try:
        reply = await server.once(call)
    except Lost:
        reply = []
    if not reply:
        done = await _done(server, identity, parts, expected)
        if done is not None:
            return done
        reply = await server.again(call)
        if reply[0] in {b"duplicate", b"conflict"}:
            # One of the attempts may have succeeded although its reply was lost too, and another
            # writer's append may have overwritten the token since.
            done = await _done(server, identity, parts, expected)
            if done is not None:
                return done
    version, last = checked(reply, identity.digest, values)
    return Appended(int(version), int(last))


async def _done(
    server: Server,
    identity: SessionIdentity,
    parts: Sequence[tuple[str, bytes, bytes, bytes]],
    expected: int | None,
) -> Appended | None:
    """The result of an append whose reply was lost; `None` if it was not executed."""
    found = await server.lines_by_id(identity.digest, [id for id, *_ in parts])
    lines = [line for _, line in found]
    # Other messages may have been stored earlier with the same ids, at the same time.
    for line, (_, *pieces) in zip(lines, parts, strict=True):
        if not _is_made_of(line, pieces):
            return None
    place = _VERSION.match(lines[-1])
    if place is None or (expected is not None and int(place[2]) != expected + 1):
        return None
    return Appended(int(place[2]), int(place[1]))


def _is_made_of(line: bytes, pieces: Sequence[bytes]) -> bool:
    """Whether a line consists of these pieces, wherever its message was put."""
    start = 0
    for piece in pieces:
        start = line.find(piece, start)
        if start < 0:
            return False
        start += len(piece)
    return start == len(line)


async def rewrite(
    server: Server,
    identity: SessionIdentity,
    replaced: Sequence[Entry],
    removed: Sequence[str],
    expected: int | None,
    seal: Seal,
) -> int:
    """See `Storage.rewrite`."""
    flat = [value for entry in replaced for value in halves(entry)]
    (version,) = await server.run(
        scripts.REWRITE, identity, Expected.of(expected), repr(time()), len(replaced),
        seal_argument(seal), *flat, *removed,
    )  # fmt: skip
    return int(version)


async def clear(
    server: Server, identity: SessionIdentity, at: float, expected: int | None, seal: Seal
) -> int:
    """See `Storage.clear`."""
    (version,) = await server.run(
        scripts.CLEAR, identity,
        identity_field(identity), Expected.of(expected), repr(at), seal_argument(seal),
    )  # fmt: skip
    return int(version)


async def fork(
    server: Server,
    identity: SessionIdentity,
    parent: int,
    at: int,
    expected: int | None,
    seal: Seal,
) -> int:
    """See `Storage.fork`."""
    (number,) = await server.run(
        scripts.FORK, identity,
        Expected.of(expected), repr(time()), parent, at, seal_argument(seal),
    )  # fmt: skip
    return int(number)


async def activate(
    server: Server, identity: SessionIdentity, branch: int, expected: int | None, seal: Seal
) -> None:
    """See `Storage.activate`."""
    await server.run(scripts.ACTIVATE, identity, branch, Expected.of(expected), seal_argument(seal))


async def keep_windows(server: Server, identity: SessionIdentity, windows: bytes | None) -> None:
    """See `Storage.keep_windows`."""
    values = ("", "") if windows is None else ("1", windows)
    await server.run(scripts.WINDOWS, identity, *values)


async def delete(server: Server, identity: SessionIdentity) -> bool:
    """See `Storage.delete`; records set aside are kept."""
    there, _ = await server.run(scripts.DELETE, identity)
    return there == b"1"


async def restore(server: Server, session: Session, rows: Sequence[Row]) -> bool:
    """See `Storage.restore`."""
    rows = [protected(row) for row in rows]
    fields = fields_of(session, rows)
    flat = [value for pair in fields.items() for value in pair]
    (did,) = await server.run(
        scripts.RESTORE, session.identity,
        session.version, len(fields), *flat, *placed_rows(rows),
    )  # fmt: skip
    return did == b"1"


async def set_aside(
    server: Server,
    identity: SessionIdentity,
    seqs: Sequence[int],
    reason: str,
    expected: int | None,
    seal: Seal,
) -> int:
    """See `Storage.set_aside`; the records are kept in a list next to the session."""
    (moved,) = await server.run(
        repairing.SET_ASIDE, identity, identity_field(identity), repr(time()),
        reason.replace("\n", " "), Expected.of(expected), seal_argument(seal), *seqs,
    )  # fmt: skip
    session = await server.session(identity.digest)
    if session is not None and not are_readable(session):
        await keep_windows(server, identity, None)
    return int(moved)
