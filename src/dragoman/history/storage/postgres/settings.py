"""How a PostgreSQL server is addressed (a URL and keywords), and what its failures mean."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import msgspec

from dragoman.errors import InvalidInputError, StoreError

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_SCHEMES = {"postgres", "postgresql"}
_SWITCH = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


class Settings(msgspec.Struct, frozen=True):
    """The settings of a store; `url` is the part passed to PostgreSQL's own library."""

    url: str
    schema: str = "dragoman"
    connections: int = 16
    timeout: float = 30.0
    prepared: bool = True

    def __post_init__(self) -> None:
        if not _SCHEMA.fullmatch(self.schema) or self.schema.startswith("pg_"):
            _refuse("schema must be lowercase letters, digits and _, and must not start with pg_")
        if self.connections < 1:
            _refuse("connections must be at least 1")
        if not 0 < self.timeout < float("inf"):
            _refuse("timeout must be a number of seconds greater than 0")

    @property
    def name(self) -> str:
        """The store's address, without user and password."""
        parts = urlsplit(self.url)
        place = parts.netloc.rpartition("@")[2] or "localhost"
        return f"postgresql://{place}{parts.path}?schema={self.schema}"


@lru_cache(1024)
def qualified(template: str, schema: str) -> bytes:
    """A statement with the schema in place of `our`."""
    return template.replace("our.", f'"{schema}".').encode()


def settings(url: str, **given: object) -> Settings:
    """The settings in a URL; keyword arguments take precedence.

    >>> settings("postgresql://db.example/chats?schema=support&sslmode=require").name
    'postgresql://db.example/chats?schema=support'
    """
    address, _, query = url.partition("?")
    scheme = address.partition("://")[0]
    if scheme not in _SCHEMES or "://" not in address:
        _refuse("the URL of a PostgreSQL store must start with postgresql://")
    pairs = parse_qsl(query, keep_blank_values=True)
    ours = {key: _value(key, text) for key, text in pairs if key in _OURS}
    theirs = [pair for pair in pairs if pair[0] not in _OURS]
    rest = f"{address}?{urlencode(theirs, quote_via=quote)}" if theirs else address
    chosen = {key: value for key, value in given.items() if value is not None}
    try:
        return msgspec.convert({"url": rest, **ours, **chosen}, Settings)
    except msgspec.ValidationError as error:  # may quote values, unless it wraps one of our errors
        cause = error.__cause__
    wrong = f"a setting ({', '.join(_OURS)}) has a value of the wrong type"
    return _refuse(str(cause) if isinstance(cause, InvalidInputError) else wrong)


_OURS: dict[str, Callable[[str], object]] = {
    "schema": str,
    "connections": int,
    "timeout": float,
    "prepared": _SWITCH.__getitem__,
}


def _value(key: str, text: str) -> object:
    try:
        return _OURS[key](text)
    except (ValueError, KeyError):
        problem = f"{key} in the URL of a PostgreSQL store has an invalid value"
    return _refuse(problem)


def _refuse(problem: str) -> Settings:
    raise InvalidInputError(problem)


# --- translates PostgreSQL's errors. Its own messages may quote values, so they are not passed on


# With these, the server closes the connection, or temporarily refuses one.
_LOST = {"57P01", "57P02", "57P03", "57P05", "25P03"}
AGAIN = {"40001", "40P01"}
NOTHING = "nothing was written"
UNKNOWN = (
    "it is unknown whether the write succeeded: reload the session to find out, or write the"
    " same messages again (they are not stored twice)"
)
DUPLICATE = "23505"
READ_ONLY = "25006"


class Refused(StoreError):  # noqa: N818 - named as in `dragoman.errors`
    """The server rejected a statement and rolled it back."""

    def __init__(self, name: str, state: str, constraint: str | None = None) -> None:
        reason = _REASONS.get(state) or _CLASSES.get(state[:2])
        reason = reason or f"PostgreSQL reports error code {state}, see its manual"
        super().__init__(f"the store {name} failed: {reason}; {NOTHING}")
        self.state = state
        self.constraint = constraint


class Late(StoreError):  # noqa: N818 - named as in `dragoman.errors`
    """A statement timed out."""

    def __init__(self, name: str, seconds: float, outcome: str = NOTHING) -> None:
        super().__init__(f"the store {name} did not respond within {seconds:g} seconds; {outcome}")
        self.seconds = seconds


class Lost(StoreError):  # noqa: N818 - named as in `dragoman.errors`
    """The connection broke."""

    def __init__(self, name: str, outcome: str = NOTHING) -> None:
        super().__init__(f"the connection to the store {name} was lost; {outcome}")


class Unreachable(StoreError):  # noqa: N818 - named as in `dragoman.errors`
    """No connection is available."""

    def __init__(self, name: str, reason: str, outcome: str = NOTHING) -> None:
        super().__init__(f"the store {name} can't be reached: {reason}; {outcome}")
        self.reason = reason


def is_lost(state: str | None) -> bool:
    """Whether an error with this code (`None`: a client error) ended the connection."""
    return state in _LOST or (state or "").startswith("08")


_REASONS = {
    "22003": "a number is too large for its column",
    "25006": "the server is read-only, such as a replica; use the primary in the URL (see"
    " target_session_attrs in PostgreSQL's manual)",
    "3F000": "the schema does not exist",
    "42501": "permission denied; grant the user the permission, or let another user open the"
    " store once to create its tables",
    "42P01": "its tables are missing; open the store again to create them",
    "42P07": "the schema contains another program's tables; use a separate schema for the store",
    "53100": "the server's disk is full; free some space and try again",
    "53300": "the server has no free connections; raise its max_connections or lower `connections`",
    "54000": "a message's id is too long for PostgreSQL to index (about 2,700 bytes)",
    "57014": "the server cancelled the statement because of its timeout",
    "26000": "a pooler mixed up prepared statements; add prepared=no to the URL",
    "42P05": "a pooler mixed up prepared statements; add prepared=no to the URL",
}
_CLASSES = {
    "22": "PostgreSQL can't store a value",
    "28": "the user or password is wrong",
    "40": "a concurrent write to the same rows; try again",
    "53": "the server is out of memory or another resource",
    "55": "the tables are locked",
    "58": "the server's disk can't be read or written",
    "XX": "the server's data is damaged; see its log",
}
