"""Writes a commit: an append as one statement and one round trip, others in a transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dragoman.errors import StoreError
from dragoman.history.storage import sql
from dragoman.history.storage.heads import Stored
from dragoman.history.storage.postgres import search
from dragoman.history.storage.postgres.failures import DUPLICATE, Refused
from dragoman.history.storage.postgres.schema import TYPES, row_columns, text_of
from dragoman.history.storage.protocol import DuplicateIds, Row
from dragoman.history.storage.shelf import Change

if TYPE_CHECKING:
    from dragoman.history.storage.postgres.pool import Link

_BATCH = 1000
_MAKE = f"""
INSERT INTO our.heads ({sql.HEAD_COLUMNS}, last_seq)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (digest) DO NOTHING RETURNING id"""
_MOVE = f"""
UPDATE our.heads SET stamp = %s, at = %s, document = %s{{}}
WHERE digest = %s AND {sql.SAME_STAMP} = %s RETURNING id"""
_LAST = ", last_seq = %s"
_LOCK = f"SELECT id FROM our.heads WHERE digest = %s AND {sql.SAME_STAMP} = %s FOR UPDATE"
_NAME = """
UPDATE our.heads SET agent = %s, chat = %s, "user" = %s, "group" = %s, scope = %s WHERE id = %s"""
_ARRAYS = ", ".join(f"%s::{kind}[]" for kind in TYPES)
_VALUES = ", ".join(f"%s::{kind}" for kind in TYPES)
_PUT = f"""
INSERT INTO our.messages (session, {sql.ROW_COLUMNS}) SELECT %s, e.* FROM unnest({_ARRAYS}) AS e"""
_GONE = (
    "DELETE FROM our.messages WHERE session = %s AND id = ANY (%s::text[]) RETURNING branch, seq"
)
_ASIDE = """
INSERT INTO our.aside SELECT s.digest, s."user", m.seq, m.branch, m.at, m.id, %s, m.body
FROM our.messages m JOIN our.heads s ON s.id = m.session
WHERE s.id = %s AND m.id = ANY (%s::text[])"""


def is_simple(change: Change) -> bool:
    """Whether a change takes one statement."""
    return not (change.drops or change.is_emptied or change.is_repair)


async def append(link: Link, before: int, stored: Stored, change: Change | None) -> bool:
    """Writes a head, and rows, in one statement."""
    rows = () if change is None else change.puts
    values = _head_values(before, stored, change)
    if len(rows) == 1:
        values += row_columns(rows[0])
    elif rows:
        values += map(list, zip(*map(row_columns, rows), strict=True))
    template = _statement(is_new=not before, has_last=change is not None, rows=min(len(rows), 2))
    try:
        return bool(await link.fetch(template, values))
    except Refused as error:
        refused = error
    raise _reason(refused)


async def commit(link: Link, before: int, stored: Stored, change: Change) -> bool:
    """Writes a head, drops rows and puts others; within the caller's transaction."""
    found = await link.fetch(
        _head(is_new=not before, has_last=True), _head_values(before, stored, change)
    )
    if not found:
        return False
    [(session,)] = found
    if change.is_emptied:
        await _empty(link, session)
    await _drop(link, session, [text_of(id) for id in change.drops])
    if change.is_repair:
        keys = [*change.aside]
        await link.run(_ASIDE, (text_of(change.reason), session, keys))
        await _drop(link, session, keys)
        await link.run(_NAME, (*stored.names, session))
        # The index may contain altered rows: the next search rebuilds it.
        await search.unindex_session(link, session)
    for batch in _batches(change.puts):
        columns = map(list, zip(*map(row_columns, batch), strict=True))
        try:
            await link.run(_PUT, (session, *columns))
        except Refused as error:
            refused = error
        else:
            continue
        raise _reason(refused)
    if change.drops:
        await search.index_anew(link, session, change.puts)
    return True


def _reason(error: Refused) -> StoreError:
    return DuplicateIds([]) if error.state == DUPLICATE else error


async def _empty(link: Link, session: int) -> int:
    await search.unindex_session(link, session)
    return await link.run("DELETE FROM our.messages WHERE session = %s", (session,))


async def _drop(link: Link, session: int, ids: list[str]) -> None:
    if ids:
        await search.unindex(link, session, await link.fetch(_GONE, (session, ids)))


async def remove(link: Link, which: Sequence[tuple[str, int]]) -> list[int | None]:
    """See `Shelf.remove`; within the caller's transaction."""
    return [await _removed(link, *each) for each in which]


async def _removed(link: Link, digest: str, stamp: int) -> int | None:
    found = await link.fetch(_LOCK, (digest, stamp))
    if not found:
        return None
    [(session,)] = found
    messages = await _empty(link, session)
    await link.run("DELETE FROM our.heads WHERE id = %s", (session,))
    return messages


def _head_values(before: int, stored: Stored, change: Change | None) -> list[Any]:
    digest, names, stamp, at, document = stored
    last = [] if change is None else [change.head.last_seq]
    if before:
        return [stamp, at, document, *last, digest, before]
    return [digest, *names, stamp, at, document, *last]


def _head(*, is_new: bool, has_last: bool) -> str:
    return _MAKE if is_new else _MOVE.format(_LAST if has_last else "")


@lru_cache
def _statement(*, is_new: bool, has_last: bool, rows: int) -> str:
    """A head and no row, one, or several."""
    head = _head(is_new=is_new, has_last=has_last)
    if not rows:
        return head
    chosen = f"{_VALUES} FROM h" if rows == 1 else f"e.* FROM h, unnest({_ARRAYS}) AS e"
    return (
        f"WITH h AS ({head}), m AS (INSERT INTO our.messages (session, {sql.ROW_COLUMNS})"
        f" SELECT h.id, {chosen}) SELECT id FROM h"
    )


def _batches(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    for start in range(0, len(rows), _BATCH):
        yield rows[start : start + _BATCH]
