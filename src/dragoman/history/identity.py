"""`SessionIdentity`: the five names that form the key of a conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from hashlib import blake2b
from urllib.parse import unquote_to_bytes

from dragoman.errors import InvalidInputError
from dragoman.model.value import Value, expect, expect_fields, name_shown

FIELDS: tuple[str, ...] = ("agent", "chat", "user", "group", "scope")
_PERSONAL_FIELDS = frozenset({"user", "group"})
_MAX_NAME_BYTES = 64 * 1024
# Uppercase is escaped too: some file systems and collations are case-insensitive.
_UNSAFE = re.compile(rb"[^a-z0-9_-]")


class SessionIdentity(Value, frozen=True, dict=True, gc=True):
    """The names that identify a conversation. Different identities never share a key.

    >>> SessionIdentity(agent="support", chat="7", user="Ana").key
    'agent=support&chat=7&user=%41na'

    All fields are optional, but at least one must be set. A missing name differs from an empty one.
    """

    agent: str | None = None
    """The agent or assistant."""
    chat: str | None = None
    """The conversation."""
    user: str | None = None
    """The user."""
    group: str | None = None
    """The group, team or tenant."""
    scope: str | None = None
    """Separates parts of an application that use the same names."""

    def __post_init__(self) -> None:
        expect_fields(self, **dict.fromkeys(FIELDS, str))
        names = [name for name in (getattr(self, field) for field in FIELDS) if name is not None]
        if not names:
            msg = f"a session identity needs at least one of {', '.join(FIELDS)}"
            raise InvalidInputError(msg)
        for name in names:
            escaped(name)

    # Needed several times for every write, so they are cached.

    @cached_property
    def key(self) -> str:
        """All names, escaped to ASCII: unique for each identity, and reversible."""
        pairs = zip(FIELDS, self.columns, strict=True)
        return "&".join(f"{field}={column}" for field, column in pairs if column is not None)

    @cached_property
    def digest(self) -> str:
        """The hash of the key, 40 hex digits: used by stores, as names may be of any length."""
        return blake2b(self.key.encode(), digest_size=20).hexdigest()

    @cached_property
    def columns(self) -> tuple[str | None, ...]:
        """The names, escaped for databases: no NUL bytes, and safe against case folding."""
        names = (getattr(self, field) for field in FIELDS)
        return tuple(None if name is None else escaped(name) for name in names)

    @classmethod
    def from_columns(cls, columns: tuple[str | None, ...]) -> SessionIdentity:
        """The identity with these `columns`."""
        return cls(*map(unescaped, columns))

    def _compared_fields(self) -> tuple[str | None, ...]:
        return (self.agent, self.chat, self.user, self.group, self.scope)  # needed for every write

    def _sizes(self) -> Iterator[str]:
        for field in FIELDS:
            name = getattr(self, field)
            if name is None:
                continue
            # The names of users and groups may be email addresses or real names.
            shown = () if field in _PERSONAL_FIELDS else name_shown(name)
            yield f"{field}={shown[0]}" if shown else field


def escaped(name: str) -> str:
    """A name as lowercase ASCII letters, digits, `_`, `-` and `%xx`; injective."""
    expect(name, str, "a name of a session identity")
    try:
        raw = name.encode()
    except UnicodeEncodeError:
        raw = b""
        problem: str | None = "a lone surrogate"
    else:
        problem = f"more than {_MAX_NAME_BYTES} bytes" if len(raw) > _MAX_NAME_BYTES else None
    if problem is not None:
        msg = f"a name of a session identity contains {problem}"
        raise InvalidInputError(msg)
    return _UNSAFE.sub(_percent, raw).decode()


def unescaped(column: str | None) -> str | None:
    """The inverse of `escaped`."""
    return None if column is None else unquote_to_bytes(column).decode()


def _percent(match: re.Match[bytes]) -> bytes:
    return b"%%%02X" % match[0][0]
