"""Files of November 2026: a session in the first line, then its messages. Replaced once, on sight.

    {"dragoman":2,"kind":"Session","value":{"version":7,"last_seq":9,"updated_at":1763294400.5,
    "chain":"f1-9.3.4711-5ac0be11-0123456789abcdef"        ,"identity":{…},"created_at":…}}

The `chain` of the session had the number of rows, the version at which the file was last rewritten,
the acknowledged size of the rows, and a checksum of the line. A row had its version, and how many
of the same write followed; the seal was written with the last row. A line of another layout, as in
exports, was read as well.
"""

from __future__ import annotations

import json
import re
import secrets
from base64 import urlsafe_b64decode
from binascii import Error
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.errors import Corrupt, InvalidInputError
from dragoman.history.identity import FIELDS, SessionIdentity
from dragoman.history.records import StoredRow, parsed, read_line, refuse_newer
from dragoman.history.storage.files.directory import Directory, Kept, keep_aside, write_again
from dragoman.history.storage.files.log import Log, is_commit, mark_of, row_line
from dragoman.history.storage.heads import Head, Stored, plausible, stored_of, without_checksum
from dragoman.history.storage.integrity import Tally, damage_to, place_of, tally_of
from dragoman.history.storage.protocol import MAIN, Fork, Row, Session

_SESSION = re.compile(rb'\{"dragoman":[12],"kind":"Session",')
_NUMBERS = re.compile(
    rb'\{"dragoman":2,"kind":"Session","value":\{'
    rb'("version":(-?\d{1,20}),"last_seq":(-?\d{1,20}),"updated_at":(-?[\d.e+-]{1,24})'
    rb',"chain":"f1-(\d{1,20})\.(-?\d{1,20})\.(\d{1,20})-[0-9a-f]{8}-)([0-9a-f]{16})" *,(.*)\}'
)
_NO_NUMBERS = b'{"dragoman":2,"kind":"Session","value":{"version":0,"last_seq":0,"updated_at":0,'
_FORM = "f1-"
_TORN = "incomplete: the line, or the write that it belongs to, was never finished"
_decode = json.JSONDecoder().raw_decode


class _First(NamedTuple):
    """What a first line said."""

    session: Session
    rows: int | None
    """The number of messages; `None` if it was never counted."""
    written: int
    """The version at which the file was last rewritten."""
    size: int
    """The bytes of messages that were acknowledged."""
    has_marks: bool


class _Line(NamedTuple):
    start: int
    raw: bytes
    row: StoredRow | None


def is_earlier(log: Log) -> bool:
    """Whether a file without our first line is one of November 2026."""
    lines = log.raw_lines(0)
    first = next(lines, (0, b""))[1]
    if _SESSION.match(first):
        return True
    if log.commit is not None or is_commit(first):
        return False
    found = [parsed(first), *(parsed(raw) for _, raw in lines if not is_commit(raw))]
    return any(row is not None and (row.version or row.chain is None) for row in found)


def migrate(directory: Directory, digest: str) -> None:
    """Replaces a file, unless another program was faster; the caller holds the lock."""
    with directory.reading(digest) as fd:
        if fd is None:
            return
        log = Log(fd, digest)
        if log.file or not is_earlier(log):
            return
        with open(fd, "rb", closefd=False) as file:
            file.seek(0)
            raw = file.read()
    first, _, rest = raw.partition(b"\n")
    lines = _lines(rest, len(first) + 1, digest)
    head = _first_in(first, digest)
    end = _end(head, lines, len(first) + 1, len(raw))
    torn = [(line.start, line.raw) for line in lines if line.start >= end]
    lines = [line for line in lines if line.start < end]
    stored = _migrated(head, lines, len(first) + 1) if head else _salvaged(first, lines, digest)
    identity = head.session.identity if head else _identity_in(first, digest)
    if identity is not None and torn:
        keep_aside(directory, identity, torn, _TORN)
    directory.remove(digest, [".ids"])
    write_again(directory, stored, _kept(lines, digest))


def _kept(lines: Sequence[_Line], digest: str) -> Kept:
    seq, mark = 0, mark_of(digest)
    for _, raw, stored in lines:
        if stored is None:
            yield raw, None
            continue
        row = _row_of(stored)
        is_in_order = row.seq > seq
        seq = max(seq, row.seq)
        yield row_line(row, mark)[:-1], row if is_in_order else None


# --- lines


def _lines(rest: bytes, start: int, digest: str) -> list[_Line]:
    mark = f"{_FORM}{digest[:8]}."
    found: list[_Line] = []
    for raw in rest.split(b"\n"):
        if raw:
            found.append(_Line(start, raw, _row_in(raw, mark)))
        start += len(raw) + 1
    return found


def _row_in(raw: bytes, mark: str) -> StoredRow | None:
    row = parsed(raw)
    if row is None or row.chain is None:
        return row
    chain = f"{mark}{row.branch}.{row.seq}.{row.version}.{row.more}"
    if row.chain == chain or row.chain.startswith(f"{chain}-"):
        return row
    if row.chain.startswith((_FORM, "p1-")) and row.chain != place_of(row.branch, row.seq):
        return None
    return row


def _row_of(stored: StoredRow) -> Row:
    chain = stored.chain
    if chain is not None and chain.startswith(_FORM):
        chain = place_of(stored.branch, stored.seq)
    return Row(
        stored.id, bytes(stored.message), stored.at, stored.model, stored.usage,
        seq=stored.seq, branch=stored.branch, checksum=stored.checksum, chain=chain,
    )  # fmt: skip


def _seal_in(row: StoredRow) -> bytes | UnsetType | None:
    """The seal that was written with a row; UNSET if there was none."""
    chain = row.chain or ""
    if not chain.startswith(_FORM):
        return UNSET
    _, mark, coded = chain[len(_FORM) :].partition("-")
    if not mark:
        return UNSET
    try:
        return urlsafe_b64decode(coded) or None
    except (Error, ValueError):
        return None  # the reader of the seal will notice


def _end(head: _First | None, lines: Sequence[_Line], begin: int, size: int) -> int:
    """Where the last write ends that was finished."""
    acknowledged = begin + (head.size if head else 0)
    for line in reversed(lines):
        if line.row is not None and (line.start < acknowledged or _is_whole(head, line.row)):
            return max(line.start + len(line.raw) + 1, min(acknowledged, size))
    return min(acknowledged, size) if acknowledged > begin or head is None else begin


def _is_whole(head: _First | None, row: StoredRow) -> bool:
    # A row that existed when the file was last rewritten may have lost its followers.
    if row.more and (head is None or row.version > head.session.version):
        return False
    return head is None or not head.has_marks or damage_to(_row_of(row)) is None


# --- the session


def _first_in(raw: bytes, digest: str) -> _First | None:
    found = _NUMBERS.fullmatch(raw)
    if found is None:
        session = _session_in(raw)
        if session is None or (session.chain or "").startswith(_FORM):
            return None  # ours, but its layout is damaged
        counted = None
        with suppress(Corrupt):
            tally = tally_of(session)
            counted = None if tally is None else tally.rows
        is_ours = session.identity.digest == digest
        return _First(session, counted, session.version, 0, has_marks=False) if is_ours else None
    text, version, last_seq, at, rows, written, size, check, fixed = found.groups()
    session = _session_in(_NO_NUMBERS + fixed + b"}")
    hashed = blake2b(fixed, digest_size=8)
    hashed.update(text)
    if session is None or session.identity.digest != digest or hashed.hexdigest().encode() != check:
        return None
    session = msgspec.structs.replace(
        session, version=int(version), last_seq=int(last_seq), updated_at=float(at), chain=None
    )
    return _First(session, int(rows), int(written), int(size), has_marks=True)


def _session_in(raw: bytes) -> Session | None:
    try:
        found = read_line(raw)
    except Corrupt:
        refuse_newer(raw)
        return None
    return found if isinstance(found, Session) else None


def _migrated(head: _First, lines: Sequence[_Line], begin: int) -> Stored:
    of, rows = head.session, [line.row for line in lines if line.row is not None]
    try:
        if of.chain is not None:
            tally_of(of)
    except Corrupt:
        return _damaged(of)
    last = max(rows, key=lambda row: row.seq, default=None)
    counted = len(rows)
    if head.rows is not None:
        later = [line.row for line in lines if line.start >= begin + head.size]
        unmarked = [row for row in later if row is not None and row.version > of.version]
        counted = head.rows + (len(unmarked) if head.has_marks else 0)
    version, last_seq, at, seal = of.version, of.last_seq, of.updated_at, of.seal
    if last is not None:
        at = last.at if last.version > version else at
        version, last_seq = max(version, last.version), max(last_seq, last.seq)
        newest = _seal_in(last) if head.has_marks and last.version > head.written else UNSET
        seal = seal if newest is UNSET else newest
    chain = of.chain
    if chain is None or head.rows is not None:
        chain = str(Tally(version, last_seq, counted, len(of.forks)))
    session = msgspec.structs.replace(
        of, version=version, last_seq=last_seq, updated_at=at, seal=seal, chain=chain
    )
    stamp = _stamp()
    return stored_of(Head(session, stamp, stamp))


def _damaged(session: Session) -> Stored:
    stamp = _stamp()
    return without_checksum(stored_of(Head(session, stamp, stamp)))


def _stamp() -> int:
    return secrets.randbits(62) + 1


# --- what a damaged first line still says


def _salvaged(first: bytes, lines: Sequence[_Line], digest: str) -> Stored:
    identity = _identity_in(first, digest)
    rows = [line.row for line in lines if line.row is not None]
    forks = {fork.number: fork for fork in _forks(first)}
    before = 0
    for row in rows:  # branches known from their messages only start where these start
        if row.branch == MAIN:
            before = row.seq
        elif plausible(row.branch):
            forks.setdefault(row.branch, Fork(row.branch, MAIN, before))
    active = _number(first, "active")
    times = [row.at for row in rows]
    session = Session(
        identity or SessionIdentity(chat="unreadable"),
        max([_number(first, "version"), *(plausible(row.version) for row in rows)]),
        max([_number(first, "last_seq"), *(plausible(row.seq) for row in rows)]),
        min(times, default=0.0),
        max(times, default=0.0),
        active if active in forks else MAIN,
        tuple(forks[number] for number in sorted(forks)),
    )
    stored = _damaged(session)
    names = (None,) * len(FIELDS) if identity is None else stored.names
    return stored._replace(digest=digest, names=names)


def _identity_in(first: bytes, digest: str) -> SessionIdentity | None:
    """The identity, if its names are intact: their digest must be the file's name."""
    told = _field(first, "identity")
    if not isinstance(told, dict) or not all(isinstance(name, str) for name in told.values()):
        return None
    try:
        identity = SessionIdentity(**{field: told[field] for field in FIELDS if field in told})
    except InvalidInputError:
        return None
    return identity if identity.digest == digest else None


def _forks(raw: bytes) -> Iterator[Fork]:
    told = _field(raw, "forks")
    known = {MAIN}
    for each in told if isinstance(told, list) else []:
        with suppress(msgspec.ValidationError):
            fork = msgspec.convert(each, Fork)
            if fork.parent in known and fork.parent < fork.number and fork.at == plausible(fork.at):
                known.add(fork.number)
                yield fork


def _number(raw: bytes, name: str) -> int:
    told = _field(raw, name)
    return plausible(told) if type(told) is int else 0


def _field(raw: bytes, name: str) -> Any:
    """The value of a field; `None` if unreadable."""
    text = raw.decode(errors="replace")
    found = re.search(f'"{name}":', text)
    if found is None:
        return None
    try:
        return _decode(text, found.end())[0]
    except (ValueError, RecursionError):
        return None
