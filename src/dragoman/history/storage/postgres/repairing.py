"""Sets damaged records aside, and recomputes a session's counters from the rest."""

from __future__ import annotations

from collections.abc import Sequence
from time import time
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from dragoman.errors import NotFound
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.integrity import Tally
from dragoman.history.storage.plausibility import mended
from dragoman.history.storage.postgres.tables import taken_out, write
from dragoman.history.storage.postgres.values import (
    chain_and_shape,
    document_bytes,
    maybe,
    text_of,
)
from dragoman.history.storage.protocol import MAIN, NO_SESSION, Fork, Seal, Session, conflict
from dragoman.history.storage.soundness import highest, moment, sound_forks

if TYPE_CHECKING:
    from dragoman.history.storage.postgres.link import Link

_DIGITS = 16  # maximum digits of a plausible number
_LOCK = """
SELECT id, version, last_seq, created_at, updated_at, active, forks, "window", windows, chain, seal
FROM our.heads WHERE digest = %s FOR UPDATE"""
# A session with an altered digest is found by its names.
_ADOPT = """
UPDATE our.heads SET digest = %s WHERE (agent, chat, "user", "group", scope) IS NOT DISTINCT FROM
(%s, %s, %s, %s, %s)"""
# Of two rows with the same number, the one written elsewhere is moved; the other stays.
_IN_PLACE = "coalesce({row}.chain = 'p1-' || {row}.branch || '.' || {row}.seq, {unknown})"
_CHOSEN = f"""
seq < 1 OR branch < 0 OR seq = ANY (%s::bigint[]) AND NOT (
{_IN_PLACE.format(row="messages", unknown="FALSE")} AND EXISTS (SELECT 1 FROM our.messages o WHERE
o.session = messages.session AND o.seq = messages.seq AND NOT
{_IN_PLACE.format(row="o", unknown="TRUE")}))"""
_ASIDE = f"""
INSERT INTO our.aside SELECT %s, %s, seq, branch, at, id, %s, body FROM our.messages
WHERE session = %s AND ({_CHOSEN})"""
_BRANCHES = """
SELECT branch, min(seq), max(seq), count(*) FROM our.messages WHERE session = %s GROUP BY branch"""
_SEALED = """
SELECT count(*), count(*) FILTER (WHERE body ~ '^{"dragoman":[0-9]+,"kind":"SealedMessage",')
FROM our.messages WHERE session = %s"""
_NAMES = """
UPDATE our.heads SET agent = %s, chat = %s, "user" = %s, "group" = %s, scope = %s, created_at = %s,
indexed = 0 WHERE id = %s"""


async def set_aside(
    link: Link,
    identity: SessionIdentity,
    seqs: Sequence[int],
    reason: str,
    expected: int | None,
    seal: Seal,
) -> int:
    """See `Storage.set_aside`."""
    found = await link.fetch(_LOCK, (identity.digest,))
    if not found:
        await link.run(_ADOPT, (identity.digest, *identity.columns))
        found = await link.fetch(_LOCK, (identity.digest,))
    if not found:
        raise NotFound(NO_SESSION)
    id, *columns = found[0]
    version = _version(columns)
    if expected is not None and version != expected:
        raise conflict(expected, version)
    user = identity.columns[2]
    await link.run(_ASIDE, (identity.digest, user, text_of(reason), id, list(seqs)))
    moved = await taken_out(link, id, _CHOSEN, list(seqs))
    branches = await link.fetch(_BRANCHES, (id,))
    [(rows, sealed)] = await link.fetch(_SEALED, (id,))
    session = mended(_counted(identity, columns, branches), is_plain=rows > 0 and not sealed)
    session = session if seal is UNSET else replace(session, seal=seal)
    await write(link, id, session)
    # The index may contain altered rows: the next search rebuilds it.
    await link.run("DELETE FROM our.texts WHERE session = %s", (id,))
    await link.run(_NAMES, (*identity.columns, session.created_at, id))
    return moved


def _counted(identity: SessionIdentity, columns: Sequence[Any], branches: Sequence[Any]) -> Session:
    """The session as far as it is readable, with counters that match the rows."""
    _, last, created, updated, active, forks, window, windows, proof, old = columns
    now = time()
    numbers = _tally(proof)
    last_seq = highest(last, numbers[1], *(most for _, _, most, _ in branches))
    version = _version(columns) + 1
    kept = sound_forks(_triples(forks), {b: first for b, first, _, _ in branches}, last_seq)
    rows = sum(count for _, _, _, count in branches)
    return Session(
        identity, version, last_seq, moment(created, moment(updated, now)), now,
        active if active in {fork.number for fork in kept} else MAIN, kept,
        maybe(document_bytes, window), maybe(document_bytes, windows),
        str(Tally(version, last_seq, rows, len(kept))),
        maybe(document_bytes, old),
    )  # fmt: skip


def _version(columns: Sequence[Any]) -> int:
    """The session's version, or that in its tally if higher."""
    return highest(columns[0], _tally(columns[-2])[0])


def _tally(proof: str | None) -> tuple[int, int]:
    """The version and last number in a tally, as far as readable."""
    chain, _ = chain_and_shape(proof)
    numbers = (chain or "").removeprefix("n1-").split(".")[:2]
    found = [int(n) if n.isascii() and n.isdigit() and len(n) <= _DIGITS else 0 for n in numbers]
    return (found[0], found[1]) if len(found) > 1 else (0, 0)


def _triples(forks: Any) -> list[tuple[int, int, int]]:
    """The plausible branches in the column."""
    listed = [tuple(each) for each in forks or () if isinstance(each, list)]
    return [
        each for each in listed if len(each) == len(Fork.__struct_fields__) and None not in each
    ]
