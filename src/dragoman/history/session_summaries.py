"""Describes sessions for listings, without reading them in full."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dragoman.errors import ConfigError, Corrupt, NotFound
from dragoman.history.branches import Stretch, read_path, read_tail, stretches
from dragoman.history.records import is_sealed, message_of
from dragoman.history.storage.integrity import is_damaged, tally_of
from dragoman.history.storage.protocol import MAIN, Row, Session, Storage
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.roles import Role

TITLE = "dragoman.title"
"""The metadata key, in a session's first message, of the title given by its owner.

Stored there, the title is part of exports and copies, and is deleted with the conversation.
"""
TAGS = "dragoman.tags"
"""The metadata key, in the same message, of the tags given by its owner: a list of texts."""
MAX_TAGS, MAX_TAG_CHARS = 20, 40
_FIRST, _LAST = 3, 5  # number of messages that are read
_CONCURRENCY = 16
_MAX_LINE_CHARS = 200  # characters of a first line or title
_MAX_READ = 5000  # characters of a message in which that line is looked for
_LONG, _LONGEST_WORD = 80, 30
_FILE = re.compile(r"\s*([^\n]{1,200}\.\w{1,10}):\n\n")
"""How the terminal and the web page begin a text that was attached."""
_FENCES = ("```", "~~~")
_TAG = re.compile(r"<[^<>]*>|[-=*_]{3,}")
_MARKS = re.compile(r"^(?:#{1,6}|>|[-*+]|\d{1,3}[.)])\s+")
_BOLD = re.compile(r"(?:\*\*|`)([^*`]+)(?:\*\*|`)")
_GREETING = re.compile(
    r"^(?:hi|hello|hey|hallo|hola|bonjour|salut|ciao|good (?:morning|afternoon|evening)|guten tag)"
    r"(?: there| all| everyone)?(?:[,.!]+\s+|[,.!]*$)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r".{15,79}?[.!?](?=\s)")
_DIGEST = 40
_HEXADECIMAL = frozenset("0123456789abcdef")


class Listed(NamedTuple):
    """A session, and a description of it."""

    session: Session
    messages: int
    model: str | None
    first_line: str | None
    unreadable: str | None
    """Why there is no first line: it is encrypted or damaged."""
    title: str | None = None
    """The title given by its owner."""
    tags: tuple[str, ...] = ()
    """The tags given by its owner."""


async def looked_at(
    storage: Storage, sessions: Sequence[Session], advance: Callable[[], None] = lambda: None
) -> list[Listed]:
    """Describes sessions; reads several concurrently, as a server may be far away.

    `advance` is called once per session, to report progress.
    """
    found: list[Listed] = []
    for start in range(0, len(sessions), _CONCURRENCY):
        some = sessions[start : start + _CONCURRENCY]
        found += await asyncio.gather(*(_listed(storage, session) for session in some))
        for _ in some:
            advance()
    return found


async def _listed(storage: Storage, session: Session) -> Listed:
    messages = 0
    try:
        messages = await _count(storage, session)
        first, last = await _ends(storage, session, messages)
    except ConfigError:  # encrypted with a key that was not given
        return Listed(session, messages, None, None, "encrypted with another key")
    except (Corrupt, NotFound):  # a broken branch; `verify` reports it
        return Listed(session, messages, None, None, "damaged")
    model = next((row.model for row in reversed(last) if row.model), None)
    row = await _titled_row(storage, session, first)
    title, tags = (None, ()) if row is None else (title_in(row), tags_in(row))
    return Listed(session, messages, model, *_first_line(first), title, tags)


async def _count(storage: Storage, session: Session) -> int:
    """The number of messages: from the session's own tally, which saves a query, if it has one."""
    tally = None if is_damaged(session) else tally_of(session)
    return await storage.count(session.identity) if tally is None else tally.rows


async def _ends(storage: Storage, session: Session, messages: int) -> tuple[list[Row], list[Row]]:
    path = stretches(session, session.active)
    if messages <= _FIRST + _LAST:
        rows = await read_path(storage, session.identity, path)
        return rows[:_FIRST], rows
    first = await _beginning(storage, session, path)
    return first, await read_tail(storage, session.identity, path, _LAST)


async def _beginning(storage: Storage, session: Session, path: list[Stretch]) -> list[Row]:
    rows: list[Row] = []
    for branch, upto in path:
        missing = _FIRST - len(rows)
        if missing <= 0:
            break
        rows += await storage.rows(session.identity, branch=branch, upto=upto, limit=missing)
    return rows


def _first_line(rows: Sequence[Row]) -> tuple[str | None, str | None]:
    """The first line of the user, or else of anybody; or why it can't be read."""
    messages: list[Message] = []
    unreadable: str | None = None
    for row in rows:
        try:
            messages.append(message_of(row.body))
        except Corrupt:
            unreadable = unreadable or ("encrypted" if is_sealed(row.body) else "damaged")
    said = [message for message in messages if message.role is Role.USER]
    said += [m for m in messages if m.role not in {Role.SYSTEM, Role.DEVELOPER}]
    said += messages
    if said:
        return _line_of(said[0]), None
    return (None, unreadable) if unreadable else ("", None)


def _line_of(message: Message) -> str:
    line = _telling_line(_own_text(message))
    if line:
        return _shortened(line)
    kinds = [type(part).__name__ for part in message.parts if not isinstance(part, Text)]
    return f"[{kinds[0]}]" if kinds else ""


def _own_text(message: Message) -> str:
    """What the user wrote: attached texts and a client's own additions come before it."""
    texts = [part.text for part in message.parts if isinstance(part, Text) and part.text.strip()]
    files = [_FILE.match(text) for text in texts]
    own = [text for text, file in zip(texts, files, strict=True) if file is None]
    return own[-1] if own else files[0][1] if files and files[0] else ""


def _telling_line(text: str) -> str:
    """The first line that says something: no greeting, no markup, and code only if all is code."""
    otherwise, is_code = "", False
    for line in text[:_MAX_READ].splitlines():
        bare = line.strip()
        if bare.startswith(_FENCES):
            is_code = not is_code
        elif bare and _TAG.fullmatch(bare) is None:
            plain = bare if is_code else _BOLD.sub(r"\1", _MARKS.sub("", bare))
            telling = _GREETING.sub("", plain)
            if telling and not is_code:
                return telling
            otherwise = otherwise or plain
    return otherwise


def _shortened(line: str) -> str:
    """A line of at most 200 characters: its first sentence, or cut at a word."""
    sentence = _SENTENCE.match(line) if len(line) > _LONG else None
    if sentence is not None:
        return sentence[0]
    if len(line) <= _MAX_LINE_CHARS:
        return line
    cut = line[: _MAX_LINE_CHARS - 1]
    at = cut.rfind(" ", _MAX_LINE_CHARS - _LONGEST_WORD)
    return f"{cut if at < 0 else cut[:at]}…"


# --- title and tags


async def _titled_row(storage: Storage, session: Session, rows: Sequence[Row]) -> Row | None:
    """The session's first message, which not every branch contains."""
    if not rows or rows[0].branch != MAIN:
        rows = await storage.rows(session.identity, limit=1)
    return rows[0] if rows else None


def title_in(row: Row) -> str | None:
    """The title in a session's first message; the value is not trusted."""
    try:
        found = message_of(row.body).metadata.get(TITLE)
    except Corrupt:
        return None
    return found[:_MAX_LINE_CHARS] if isinstance(found, str) and found else None


def tags_in(row: Row) -> tuple[str, ...]:
    """The tags in a session's first message; the value is not trusted."""
    try:
        found = message_of(row.body).metadata.get(TAGS)
    except Corrupt:
        return ()
    given = found[:MAX_TAGS] if isinstance(found, (list, tuple)) else ()
    return tuple(each[:MAX_TAG_CHARS] for each in given if isinstance(each, str) and each)


# --- lookup by digest


async def sessions_with_digest(storage: Storage, digits: str, *, limit: int) -> list[Session]:
    """The sessions whose digest starts with these hex digits; none if they are not hex digits."""
    digits = digits.lower()
    if not 0 < len(digits) <= _DIGEST or not set(digits) <= _HEXADECIMAL:
        return []
    # The lower bound is the predecessor of the digits, followed by a character above "f".
    before = f"{int(digits, 16) - 1:0{len(digits)}x}g" if int(digits, 16) else ""
    found = await storage.sessions(limit=limit, after=before)
    return [session for session in found if session.identity.digest.startswith(digits)]
