"""The stored form: messages as JSON bodies, sessions and rows as lines of JSON.

```json
{"dragoman":2,"kind":"Session","value":{"identity":{"chat":"7"},"version":1,"last_seq":1, …}}
{"dragoman":2,"kind":"Record","value":{"seq":1,"id":"msg_…","at":1763251200.0,"message":{…}}}
```

A body is a document with its own version, on every backend. Files, exports and Redis hold these
lines; the databases have columns instead. The format is frozen: every later version reads it.

Version 2 adds protection against damage and tampering (checksums, positions and counters stored
twice in `chain`, a seal) and windows by model.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec

from dragoman.errors import Corrupt, InvalidInputError, StoreError
from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.integrity import damage_to
from dragoman.history.storage.protocol import MAIN, Fork, Row, Session
from dragoman.model import document
from dragoman.model.jsontext import JsonText, decoder_of, dumps, loads
from dragoman.model.messages import Message
from dragoman.model.usage import Usage

_ABSENT = msgspec.Raw()  # msgspec does not support "Raw | None"


class _Stored(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    pass


class StoredRow(_Stored, kw_only=True):
    """A row as a line. The message comes last, so the other fields can be read if it is damaged.

    `version` (the session's, as of this row) and `more` (how many rows of the same write follow)
    exist in logs only, not in exports. `checksum` covers the content, `chain` repeats the position.
    """

    seq: int
    id: str
    at: float
    branch: int = MAIN
    version: int = 0
    more: int = 0
    model: str | None = None
    usage: Usage | None = None
    checksum: str | None = None
    chain: str | None = None
    message: msgspec.Raw


class StoredFork(_Stored):
    """A branch in a session line."""

    number: int
    parent: int
    at: int


class StoredSession(_Stored):
    """A session as a line. Its `chain` holds the number of rows, to detect missing ones."""

    identity: SessionIdentity
    version: int
    last_seq: int
    created_at: float
    updated_at: float
    active: int = MAIN
    forks: tuple[StoredFork, ...] = ()
    window: msgspec.Raw = _ABSENT
    windows: msgspec.Raw = _ABSENT
    chain: str | None = None
    seal: msgspec.Raw = _ABSENT


def row_of(stored: StoredRow) -> Row:
    """Converts a stored row to a `Row`."""
    return Row(
        stored.id, bytes(stored.message), stored.at, stored.model, stored.usage,
        seq=stored.seq, branch=stored.branch, checksum=stored.checksum, chain=stored.chain,
    )  # fmt: skip


def _session(stored: StoredSession) -> Session:
    return Session(
        stored.identity,
        stored.version,
        stored.last_seq,
        stored.created_at,
        stored.updated_at,
        stored.active,
        tuple(Fork(fork.number, fork.parent, fork.at) for fork in stored.forks),
        bytes(stored.window) or None,
        bytes(stored.windows) or None,
        stored.chain,
        bytes(stored.seal) or None,
    )


document.register("Record", StoredRow, row_of)
document.register("Session", StoredSession, _session)


def row_line(row: Row, *, version: int = 0, more: int = 0) -> bytes:
    """A row as a line, without the newline."""
    stored = StoredRow(
        seq=row.seq, id=row.id, at=row.at, branch=row.branch, version=version, more=more,
        model=row.model, usage=row.usage, checksum=row.checksum, chain=row.chain,
        message=msgspec.Raw(row.body),
    )  # fmt: skip
    return document.write("Record", stored)


def session_line(session: Session) -> bytes:
    """A session as a line, without the newline."""
    forks = tuple(StoredFork(fork.number, fork.parent, fork.at) for fork in session.forks)
    stored = StoredSession(
        session.identity,
        session.version,
        session.last_seq,
        session.created_at,
        session.updated_at,
        session.active,
        forks,
        _raw(session.window),
        _raw(session.windows),
        session.chain,
        _raw(session.seal),
    )
    return document.write("Session", stored)


def _raw(body: bytes | None) -> msgspec.Raw:
    return _ABSENT if body is None else msgspec.Raw(body)


def read_line(line: JsonText) -> Row | Session:
    """Reads a row or session from a line; raises `Corrupt` if it is neither."""
    try:
        value = _read(line)
    except InvalidInputError as error:
        problem = f"the record can't be read: {error}"
    else:
        if isinstance(value, (Row, Session)):
            return value
        problem = "the record is neither a session nor a message"
    raise Corrupt(problem)


def _read(line: JsonText) -> Any:
    try:
        return document.read(line)
    except InvalidInputError as error:
        first = error
    found = _around(line)
    if found is None:
        raise InvalidInputError(str(first))
    return found


_WITHIN = {"message": "body", "window": "window", "windows": "windows", "seal": "seal"}


def _around(line: JsonText) -> Row | Session | None:
    """Reads a line whose message or window has a lone surrogate, which msgspec does not support."""
    whole = loads(line)
    value = whole.get("value") if isinstance(whole, dict) else None
    if not isinstance(value, dict):
        return None
    within = {name: ours for name, ours in _WITHIN.items() if name in value}
    if not within:
        return None
    outer = document.read(dumps({**whole, "value": {**value, **dict.fromkeys(within, 0)}}))
    if not isinstance(outer, (Row, Session)):
        return None
    return msgspec.structs.replace(
        outer, **{ours: dumps(value[name]) for name, ours in within.items()}
    )


def body_of(message: Message) -> bytes:
    """The stored form of a message; raises if it could not be read back."""
    return message.to_json()


class _MessageDocument(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    dragoman: Annotated[int, msgspec.Meta(ge=document.OLDEST, le=document.VERSION)]
    kind: Literal["Message"]
    value: Message


# Histories are loaded message by message, so the common case is decoded in one step.
_decoder: msgspec.json.Decoder[_MessageDocument] = decoder_of(_MessageDocument)
_read_message = _decoder.decode
_UNREADABLE = (msgspec.DecodeError, UnicodeError, RecursionError)


def message_in(row: Row) -> Message:
    """Reads the message in a row; raises `Corrupt` if it is unreadable or was altered."""
    problem = damage_to(row)
    if problem is not None:
        raise Corrupt(problem)
    try:
        return _read_message(row.body).value
    except _UNREADABLE:
        pass  # read again below, for a better error
    return _read_with_reasons(row.body)


def message_of(body: bytes) -> Message:
    """Reads the message in a body; raises `Corrupt` if it is unreadable."""
    try:
        return _read_message(body).value
    except _UNREADABLE:
        pass  # as above
    return _read_with_reasons(body)


def _read_with_reasons(body: bytes) -> Message:
    try:
        return Message.from_json(body)
    except InvalidInputError as error:
        problem = f"the stored message can't be read: {error}"
    if is_sealed(body):
        problem = (
            "the stored message is encrypted; open the store with its keys. If you did, the message"
            " was altered"
        )
    raise Corrupt(problem)


def is_sealed(body: bytes) -> bool:
    """Whether a body is encrypted."""
    return document.is_of_kind(body, "SealedMessage")


# --- lines that may be damaged
#
# The fields before the message are read without the message, which may be large or damaged: then
# the row is still known, and can be set aside.


_MESSAGE = b',"message":'
_VERSION = re.compile(rb'\{"dragoman":(\d{1,9}),"kind":')
_SHORT = 1024  # bytes up to which decoding a whole line is faster than splitting it
_TRIES = 8  # how often to look for "message": a damaged line may be full of it


class _RowDocument(msgspec.Struct, forbid_unknown_fields=True):
    dragoman: Annotated[int, msgspec.Meta(ge=document.OLDEST, le=document.VERSION)]
    kind: Literal["Record"]
    value: StoredRow


_lines_decoder: msgspec.json.Decoder[_RowDocument] = decoder_of(_RowDocument)


def parsed(line: bytes) -> StoredRow | None:
    """The row in a line; its message may be damaged. `None` if its position is unreadable."""
    short = _decoded(line) if len(line) <= _SHORT else None
    found = short or _head(line) or _decoded(line)
    if found is None:
        refuse_newer(line)
    return found


def _head(line: bytes) -> StoredRow | None:
    # Messages can be large, and most are skipped: they are cut out, not parsed. Fields of a usage
    # come before the message and may also be named "message"; then the cut would be inside them.
    if not line.endswith(b"}}"):
        return None
    cut = line.find(_MESSAGE)
    for _ in range(_TRIES):
        if cut < 0:
            break
        start = cut + len(_MESSAGE)
        found = _decoded(line[:start] + b"0}}")
        if found is not None:
            found.message = msgspec.Raw(line[start:-2])
            return found
        cut = line.find(_MESSAGE, start) if b'"usage":' in line[:cut] else -1
    return None


def _decoded(line: bytes) -> StoredRow | None:
    try:
        return _lines_decoder.decode(line).value
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return None


def refuse_newer(line: bytes) -> None:
    """Raises for records of a newer format, which must not be treated as damage."""
    version = _VERSION.match(line)
    if version is not None and int(version[1]) > document.VERSION:
        msg = (
            f"the store has records of format version {int(version[1])}; this version of dragoman"
            f" reads versions {document.OLDEST} to {document.VERSION}. It was written by a newer"
            " dragoman, which is needed to read it; nothing was changed"
        )
        raise StoreError(msg)
