"""Salvages what is readable of a session with a damaged first line, for repair or erasure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.history.identity import FIELDS, SessionIdentity
from dragoman.history.storage.files.log import Log
from dragoman.history.storage.protocol import MAIN, Fork, Session

_UNKNOWN = "n1-"  # an invalid tally, which raises when it is read
_decode = json.JSONDecoder().raw_decode


def identity_in(log: Log) -> SessionIdentity | None:
    """The identity, if its names are intact: their digest must match the file name."""
    said = _field_value(log.first_line, "identity")
    if not isinstance(said, dict) or not all(isinstance(name, str) for name in said.values()):
        return None
    try:
        identity = SessionIdentity(**{field: said[field] for field in FIELDS if field in said})
    except InvalidInputError:
        return None
    return identity if identity.digest == log.digest else None


def salvaged(log: Log, identity: SessionIdentity) -> Session:
    """The session, from the readable parts of its first line and from its rows.

    Branches that are known only from their own messages start where these start.
    """
    if log.head is not None:
        return _renumbered(log, log.head.fixed)
    raw = log.first_line
    version, last_seq = _number(raw, "version"), _number(raw, "last_seq")
    begun: dict[int, int] = {}
    mains: list[int] = [0]
    times: list[float] = []
    for line in log.lines():
        if line.row is None:
            continue
        version, last_seq = max(version, line.row.version), max(last_seq, line.row.seq)
        times.append(line.row.at)
        if line.row.branch == MAIN:
            mains.append(line.row.seq)
        elif line.row.branch > MAIN:
            begun.setdefault(line.row.branch, max(mains))
    forks = {fork.number: fork for fork in _forks(raw, last_seq)}
    for number in sorted(begun):
        forks.setdefault(number, Fork(number, MAIN, begun[number]))
    active = _number(raw, "active")
    return Session(
        identity,
        version,
        last_seq,
        created_at=_time(raw, "created_at") or min(times, default=0.0),
        updated_at=_time(raw, "updated_at") or max(times, default=0.0),
        active=active if active in forks else MAIN,
        forks=tuple(forks[number] for number in sorted(forks)),
        chain=_UNKNOWN,
    )


def _renumbered(log: Log, head: Session) -> Session:
    """A session of which only the counters are inconsistent."""
    last = None if log.last is None else log.last.row
    return msgspec.structs.replace(
        head,
        version=max(head.version, 0 if last is None else last.version),
        last_seq=max(head.last_seq, 0 if last is None else last.seq),
        chain=_UNKNOWN,
    )


def _forks(raw: bytes, last_seq: int) -> Iterator[Fork]:
    said = _field_value(raw, "forks")
    known = {MAIN}
    for each in said if isinstance(said, list) else []:
        values = [each.get(name) for name in ("number", "parent", "at")] if _is(each, dict) else []
        if len(values) == 3 and all(_is(value, int) for value in values):  # noqa: PLR2004 - above
            fork = Fork(*values)
            if fork.parent in known and fork.parent < fork.number and 0 <= fork.at <= last_seq:
                known.add(fork.number)
                yield fork


def _number(raw: bytes, name: str) -> int:
    said = _field_value(raw, name)
    # A number far above any real one is damage too.
    return said if _is(said, int) and 0 <= said < 1 << 53 else 0


def _time(raw: bytes, name: str) -> float | None:
    said = _field_value(raw, name)
    return float(said) if isinstance(said, (int, float)) and 0 < said < 1 << 40 else None


def _field_value(raw: bytes, name: str) -> Any:
    """The value of a field; `None` if unreadable."""
    text = raw.decode(errors="replace")
    found = re.search(f'"{name}":', text)
    if found is None:
        return None
    try:
        return _decode(text, found.end())[0]
    except (ValueError, RecursionError):
        return None


def _is(value: object, kind: type) -> bool:
    return type(value) is kind
