"""Parses a store's URL: the address of the server, and settings."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import msgspec

from dragoman.errors import InvalidInputError

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
