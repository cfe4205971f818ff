"""Full-text search. The index is updated when somebody searches, not at each write.

A message's words, split as in all backends, are an array in a GIN index. `heads.indexed` records
how far a session is indexed; its writes are serialised, so nothing below can appear later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.postgres.listing import where
from dragoman.history.storage.postgres.values import ROW, row_of
from dragoman.history.storage.protocol import Filter, Hit, Row
from dragoman.history.storage.scanning import searchable, words_of

if TYPE_CHECKING:
    from dragoman.history.storage.postgres.link import Link

_BATCH = 1000
_MAX_WORD_CHARS = 500  # characters of a word; an index entry may have about 2,700 bytes
_BEHIND = """
SELECT s.id, s.last_seq - s.indexed FROM our.heads s
WHERE s.id > %s AND s.indexed < s.last_seq {} ORDER BY s.id LIMIT 100"""
# The last batch extends to the last number, however far that is: it may have been altered.
_LOCK = f"""
SELECT id, indexed, CASE WHEN indexed + {_BATCH} < (SELECT max(t.top) FROM
    (SELECT 0 AS branch UNION ALL SELECT unnest(forks[:][1:1])) AS b CROSS JOIN LATERAL
    (SELECT m.seq AS top FROM our.messages m WHERE m.session = heads.id AND m.branch = b.branch
     AND m.seq <= heads.last_seq ORDER BY m.seq DESC LIMIT 1) AS t)
THEN indexed + {_BATCH} ELSE last_seq END FROM our.heads
WHERE id = ANY (%s::bigint[]) AND indexed < last_seq ORDER BY id FOR UPDATE"""
# By branch, like the rows' index: otherwise each batch would scan the whole session.
_ROWS = f"""
SELECT m.session, {ROW} FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS p (id, low, high)
JOIN our.heads s ON s.id = p.id CROSS JOIN LATERAL
    (SELECT 0 UNION ALL SELECT unnest(s.forks[:][1:1])) AS b (branch)
JOIN our.messages m ON m.session = p.id AND m.branch = b.branch AND m.seq > p.low
    AND m.seq <= p.high"""
_INDEX = """
INSERT INTO our.texts (session, seq, branch, at, words)
SELECT e.session, e.seq, e.branch, e.at, string_to_array(e.words, ' ') FROM
unnest(%s::bigint[], %s::bigint[], %s::integer[], %s::double precision[], %s::text[])
AS e (session, seq, branch, at, words)
ON CONFLICT (session, branch, seq) DO UPDATE SET at = excluded.at, words = excluded.words"""
_FOUND = """
SELECT s.agent, s.chat, s."user", s."group", s.scope, {row} FROM (
    SELECT t.session, t.branch, t.seq FROM our.texts t JOIN our.heads s ON s.id = t.session
    WHERE t.words @> %s::text[] {clause} ORDER BY t.at DESC, t.seq DESC LIMIT %s
) t JOIN our.heads s ON s.id = t.session
JOIN our.messages m ON m.session = t.session AND m.branch = t.branch AND m.seq = t.seq
ORDER BY m.at DESC, m.seq DESC"""


async def search(link: Link, text: str, which: Filter, limit: int) -> list[Hit]:
    """See `Storage.search`; the caller has updated the index."""
    clause, values = where(which)
    words = [_indexable(word) for word in words_of(text)]
    found = await link.fetch(
        _FOUND.format(row=ROW, clause=clause), (words, *values, limit), plan=False
    )
    return [hit for each in found if (hit := _hit(each)) is not None]


def _hit(found: Sequence[Any]) -> Hit | None:
    """A hit; `None` if the session's names were altered, which `verify` reports."""
    try:
        return Hit(SessionIdentity.from_columns(tuple(found[:5])), row_of(found[5:]))
    except ValueError:
        return None


async def behind(link: Link, which: Filter, after: int) -> list[int]:
    """Sessions above `after` that are not fully indexed, enough for one batch."""
    clause, values = where(which)
    found = await link.fetch(_BEHIND.format(clause), (after, *values), plan=False)
    chosen: list[int] = []
    messages = 0
    for id, more in found:
        messages += more
        if chosen and messages > _BATCH:
            break
        chosen.append(id)
    return chosen


async def catch_up(link: Link, sessions: list[int]) -> None:
    """Indexes more messages of these sessions, up to a batch of each."""
    parts = await link.fetch(_LOCK, (sessions,))
    if not parts:
        return  # another process was faster
    ids, lows, highs = (list(column) for column in zip(*parts, strict=True))
    found = await link.fetch(_ROWS, (ids, lows, highs), plan=False)
    await _index(link, [(each[0], row_of(each[1:])) for each in found])
    await link.run(
        "UPDATE our.heads s SET indexed = p.high"
        " FROM unnest(%s::bigint[], %s::bigint[]) AS p (id, high) WHERE s.id = p.id",
        (ids, highs),
    )


async def index_anew(link: Link, session: int, rows: Iterable[Row], indexed: int) -> None:
    """Indexes changed messages again, as far as they had been indexed."""
    await _index(link, [(session, row) for row in rows if row.seq <= indexed])


async def unindex(link: Link, session: int, places: Sequence[tuple[Any, ...]]) -> None:
    """Removes messages, by branch and number, from the index."""
    await link.run(
        "DELETE FROM our.texts t USING unnest(%s::integer[], %s::bigint[]) AS e (branch, seq)"
        " WHERE t.session = %s AND t.branch = e.branch AND t.seq = e.seq",
        ([branch for branch, _ in places], [seq for _, seq in places], session),
    )


async def _index(link: Link, rows: Sequence[tuple[int, Row]]) -> None:
    if not rows:
        return
    columns = [
        [session for session, _ in rows],
        [row.seq for _, row in rows],
        [row.branch for _, row in rows],
        [row.at for _, row in rows],
        [_words(row) for _, row in rows],
    ]
    await link.run(_INDEX, columns)


def _words(row: Row) -> str:
    return " ".join(words_in(row))


def words_in(row: Row) -> set[str]:
    """The words of a message, as indexed."""
    return set(map(_indexable, searchable(row).split()))


def _indexable(word: str) -> str:
    """A word, or a hash if it is too long for the index."""
    if len(word) <= _MAX_WORD_CHARS:
        return word
    return "#" + blake2b(word.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()
