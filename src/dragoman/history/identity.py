"""Which conversation is meant: five names, every one of them part of the key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from hashlib import blake2b
from urllib.parse import unquote_to_bytes

from dragoman.errors import InvalidInputError
from dragoman.model.value import Value, expect, expect_fields, name_shown

FIELDS = ("agent", "chat", "user", "group", "scope")
_OF_PEOPLE = frozenset({"user", "group"})
_MOST = 64 * 1024
# Uppercase is escaped as well: some file systems and collations don't tell it from lowercase.
_UNSAFE = re.compile(rb"[^a-z0-9_-]")


class SessionIdentity(Value, frozen=True, dict=True, gc=True):
    """The names that a conversation is kept under. Two different identities never share a key.

    >>> SessionIdentity(agent="support", chat="7", user="Ana").key
    'agent=support&chat=7&user=%41na'

    A name that is absent and one that is empty are different. `scope` keeps apart what different
    parts of an application store under the same names.
    """

    agent: str | None = None
    chat: str | None = None
    user: str | None = None
    group: str | None = None
    scope: str | None = None

    def __post_init__(self) -> None:
        expect_fields(self, **dict.fromkeys(FIELDS, str))
        names = [name for name in (getattr(self, field) for field in FIELDS) if name is not None]
        if not names:
            msg = f"a session identity needs at least one of {', '.join(FIELDS)}"
            raise InvalidInputError(msg)
        for name in names:
            escaped(name)

    # A handle asks for these several times at every write: they are worked out once.

    @cached_property
    def key(self) -> str:
        """All names, escaped, in plain ASCII: equal for equal identities only, and reversible."""
        pairs = zip(FIELDS, self.columns, strict=True)
        return "&".join(f"{field}={column}" for field, column in pairs if column is not None)

    @cached_property
    def digest(self) -> str:
        """The key in 40 hexadecimal digits: what stores use, whatever the names' lengths."""
        return blake2b(self.key.encode(), digest_size=20).hexdigest()

    @cached_property
    def columns(self) -> tuple[str | None, ...]:
        """The names, escaped, as stores keep them: no database chokes on a NUL or folds case."""
        names = (getattr(self, field) for field in FIELDS)
        return tuple(None if name is None else escaped(name) for name in names)

    @classmethod
    def from_columns(cls, columns: tuple[str | None, ...]) -> SessionIdentity:
        """The identity whose `columns` these are."""
        return cls(*map(unescaped, columns))

    def _said(self) -> tuple[str | None, ...]:
        return (self.agent, self.chat, self.user, self.group, self.scope)  # asked at each write

    def _sizes(self) -> Iterator[str]:
        for field in FIELDS:
            name = getattr(self, field)
            if name is None:
                continue
            # A user's and a group's may be an address, or somebody's name.
            shown = () if field in _OF_PEOPLE else name_shown(name)
            yield f"{field}={shown[0]}" if shown else field


def escaped(name: str) -> str:
    """A name in lowercase ASCII letters, digits, `_`, `-` and `%xx`; different for each name."""
    expect(name, str, "a name of a session identity")
    try:
        raw = name.encode()
    except UnicodeEncodeError:
        raw = b""
        problem: str | None = "half a surrogate pair"
    else:
        problem = f"more than {_MOST} bytes" if len(raw) > _MOST else None
    if problem is not None:
        msg = f"a name of a session identity holds {problem}"
        raise InvalidInputError(msg)
    return _UNSAFE.sub(_percent, raw).decode()


def unescaped(column: str | None) -> str | None:
    """The name that was `escaped`."""
    return None if column is None else unquote_to_bytes(column).decode()


def _percent(match: re.Match[bytes]) -> bytes:
    return b"%%%02X" % match[0][0]
