"""Full-text search. The index is updated when somebody searches, not at each write.

A message's words, split as in all backends, are an array in a GIN index. `heads.indexed` records
how far a session is indexed; its writes are serialised, so nothing below can appear later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from dragoman.errors import Corrupt
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage import sql
from dragoman.history.storage.heads import head_of
from dragoman.history.storage.postgres.schema import row_of
from dragoman.history.storage.protocol import Hit, Row, branches_of
from dragoman.history.storage.scanning import searchable

if TYPE_CHECKING:
    from dragoman.history.storage.postgres.pool import Link

_BATCH = 1000
_MAX_WORD_CHARS = 500  # characters of a word; an index entry may have about 2,700 bytes
_IS_BEHIND = """
SELECT 1 FROM our.heads s WHERE s.id > %s AND s.indexed < s.last_seq {} LIMIT 1"""
_BEHIND = f"""
SELECT s.id, s.indexed, s.last_seq, {sql.HEAD} FROM our.heads s
WHERE s.id > %s AND s.indexed < s.last_seq {{}} ORDER BY s.id LIMIT 100 FOR UPDATE"""
# By branch, like the rows' index: otherwise each batch would scan the whole session.
_ROWS = f"""
SELECT p.id, {sql.ROW} FROM unnest(%s::bigint[], %s::integer[], %s::bigint[]) AS p (id, branch, low)
CROSS JOIN LATERAL (SELECT * FROM our.messages n WHERE n.session = p.id AND n.branch = p.branch
    AND n.seq > p.low ORDER BY n.seq LIMIT {_BATCH}) m"""
_INDEX = """
INSERT INTO our.texts (session, seq, branch, at, words)
SELECT e.session, e.seq, e.branch, e.at, string_to_array(e.words, ' ') FROM
unnest(%s::bigint[], %s::bigint[], %s::integer[], %s::double precision[], %s::text[])
AS e (session, seq, branch, at, words)
ON CONFLICT (session, branch, seq) DO UPDATE SET at = excluded.at, words = excluded.words"""
_FOUND = f"""
SELECT s.agent, s.chat, s."user", s."group", s.scope, {sql.ROW} FROM (
    SELECT t.session, t.branch, t.seq FROM our.texts t JOIN our.heads s ON s.id = t.session
    WHERE t.words @> %s::text[] {{}} ORDER BY t.at DESC, t.seq DESC LIMIT %s
) t JOIN our.heads s ON s.id = t.session
JOIN our.messages m ON m.session = t.session AND m.branch = t.branch AND m.seq = t.seq
ORDER BY m.at DESC, m.seq DESC"""


async def found(
    link: Link, words: Sequence[str], clause: str, values: Sequence[Any], limit: int
) -> list[Hit]:
    """The messages that contain all words, latest first; the caller has updated the index."""
    wanted = [_indexable(word) for word in words]
    hits = await link.fetch(_FOUND.format(clause), (wanted, *values, limit), plan=False)
    return [hit for each in hits if (hit := _hit(each)) is not None]


def _hit(found: Sequence[Any]) -> Hit | None:
    """A hit; `None` if the session's names were altered, which `verify` reports."""
    try:
        return Hit(SessionIdentity.from_columns(tuple(found[:5])), row_of(found[5:]))
    except ValueError:
        return None


async def is_behind(link: Link, clause: str, values: Sequence[Any], after: int) -> bool:
    """Whether there are sessions above `after` that are not fully indexed."""
    return bool(await link.fetch(_IS_BEHIND.format(clause), (after, *values), plan=False))


async def catch_up(link: Link, clause: str, values: Sequence[Any], after: int) -> int | None:
    """Indexes a batch of messages of sessions above `after`; returns where to continue."""
    behind = await link.fetch(_BEHIND.format(clause), (after, *values), plan=False)
    chosen: list[tuple[Any, ...]] = []
    messages = 0
    for each in behind:
        messages += each[2] - each[1]
        if chosen and messages > _BATCH:
            break
        chosen.append(each)
    heads = {id: _head(columns) for id, _, _, *columns in chosen}
    places = [(id, branch, low) for id, low, *_ in chosen for branch in heads[id][1]]
    columns = [[each[place] for each in places] for place in range(3)]
    rows = [(each[0], row_of(each[1:])) for each in await link.fetch(_ROWS, columns, plan=False)]
    done = {id: _done(id, last, rows) for id, (last, _) in heads.items()}
    await _index(link, [(id, row) for id, row in rows if row.seq <= done[id]])
    lasts = [last for last, _ in heads.values()]
    await link.run(
        "UPDATE our.heads s SET indexed = p.high, last_seq = p.last FROM"
        " unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS p (id, high, last) WHERE s.id = p.id",
        ([*done], [*done.values()], lasts),
    )
    if not chosen:
        return None
    id = int(chosen[-1][0])
    return id - 1 if done[id] < lasts[-1] else id


def _head(columns: Sequence[Any]) -> tuple[int, tuple[int, ...]]:
    """A session's last number, and its branches; none of a damaged one, which `verify` reports."""
    try:
        session = head_of(sql.stored_of_columns(columns)).session
    except Corrupt:
        return 0, ()
    return session.last_seq, branches_of(session)


def _done(session: int, last: int, rows: Sequence[tuple[int, Row]]) -> int:
    """The number up to which a session's rows were read."""
    numbers: dict[int, list[int]] = {}
    for id, row in rows:
        if id == session:
            numbers.setdefault(row.branch, []).append(row.seq)
    return min((max(each) for each in numbers.values() if len(each) == _BATCH), default=last)


async def index_anew(link: Link, session: int, rows: Iterable[Row]) -> None:
    """Indexes changed messages again, as far as they had been indexed."""
    [(indexed,)] = await link.fetch("SELECT indexed FROM our.heads WHERE id = %s", (session,))
    await _index(link, [(session, row) for row in rows if row.seq <= indexed])


async def unindex(link: Link, session: int, places: Sequence[tuple[Any, ...]]) -> None:
    """Removes messages, by branch and number, from the index."""
    await link.run(
        "DELETE FROM our.texts t USING unnest(%s::integer[], %s::bigint[]) AS e (branch, seq)"
        " WHERE t.session = %s AND t.branch = e.branch AND t.seq = e.seq",
        ([branch for branch, _ in places], [seq for _, seq in places], session),
    )


async def unindex_session(link: Link, session: int) -> None:
    """Removes all messages of a session from the index."""
    await link.run("DELETE FROM our.texts WHERE session = %s", (session,))
    await link.run("UPDATE our.heads SET indexed = 0 WHERE id = %s", (session,))


async def _index(link: Link, rows: Sequence[tuple[int, Row]]) -> None:
    if not rows:
        return
    columns = [
        [session for session, _ in rows],
        [row.seq for _, row in rows],
        [row.branch for _, row in rows],
        [row.at for _, row in rows],
        [" ".join(words_in(row)) for _, row in rows],
    ]
    await link.run(_INDEX, columns)


def words_in(row: Row) -> set[str]:
    """The words of a message, as indexed."""
    return set(map(_indexable, searchable(row).split()))


def _indexable(word: str) -> str:
    """A word, or a hash if it is too long for the index."""
    if len(word) <= _MAX_WORD_CHARS:
        return word
    return "#" + blake2b(word.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()
