"""Search and aggregation for backends without an index: scans every message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from dragoman.errors import Corrupt, InvalidInputError
from dragoman.history.records import message_in
from dragoman.history.storage.protocol import Group, Hit, Row, Session, Total
from dragoman.model.usage import Usage

_WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """The words of a search; raises if there are none."""
    words = _WORD.findall(text.casefold())
    if not words:
        msg = "a search needs at least one word of letters or digits"
        raise InvalidInputError(msg)
    return words


def searchable(row: Row) -> str:
    """The words of a row, separated by spaces; empty if it can't be read.

    Split and case-folded here, like the words of a search, because indexes have other rules.
    """
    try:
        text = message_in(row).text
    except Corrupt:
        return ""  # reported when the history is loaded or verified
    return " ".join(_WORD.findall(text.casefold()))


def found(text: str, rows: Iterable[tuple[Session, Row]], limit: int) -> list[Hit]:
    """The messages that contain all words, latest first."""
    wanted = set(words_of(text))
    hits = [
        Hit(session.identity, row)
        for session, row in rows
        if wanted <= set(searchable(row).split())
    ]
    hits.sort(key=lambda hit: (hit.row.at, hit.row.seq), reverse=True)
    return hits[:limit]


def summed(by: Group, rows: Iterable[tuple[Session, Row]]) -> list[Total]:
    """The usage of these messages by session, user, model or day."""
    sums: dict[str | None, tuple[Usage, int]] = {}
    for key, usage in _keyed(by, rows):
        total, messages = sums.get(key, (Usage(), 0))
        sums[key] = total + usage, messages + 1
    ordered = sorted(sums.items(), key=lambda item: (item[0] is not None, item[0] or ""))
    return [Total(key, usage, messages) for key, (usage, messages) in ordered]


def _keyed(by: Group, rows: Iterable[tuple[Session, Row]]) -> Iterator[tuple[str | None, Usage]]:
    for session, row in rows:
        if row.usage is None:
            continue
        if by == "session":
            yield session.identity.digest, row.usage
        elif by == "user":
            yield session.identity.user, row.usage
        elif by == "model":
            yield row.model, row.usage
        else:
            yield day_of(row.at), row.usage


def day_of(at: float) -> str | None:
    """The day in UTC, such as `2026-11-16`; `None` if the time is damaged."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
    except (OSError, OverflowError, ValueError):
        return None
