"""The connection pool, and recovery from broken connections.

A read is retried. A write whose connection broke raises `LostReply`: the ledger finds out whether
it was done, by its stamp, and sends it again if not.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import lru_cache
from time import monotonic
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import msgspec
import psycopg
from psycopg.adapt import AdaptersMap
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.numeric import Int8Dumper

from dragoman.errors import InvalidInputError, StoreError
from dragoman.history.storage.postgres import schema
from dragoman.history.storage.postgres.pool import Closed, Connection, Exhausted, Link, Pool
from dragoman.history.storage.shelf import LostReply

P = ParamSpec("P")
T = TypeVar("T")
Work = Callable[Concatenate[Link, P], Awaitable[T]]
_ATTEMPTS = 3
_SLOW = 20  # factor for the timeout of operations over many sessions
_CONNECT = 10  # seconds; another attempt is better than a long wait
# At other levels, concurrent writers to a session fail instead of waiting for each other.
_READ_COMMITTED = r"-c default_transaction_isolation=read\ committed"


class Connections:
    """An open pool of connections to one server."""

    def __init__(self, settings: Settings, pool: Pool) -> None:
        self._settings = settings
        self._pool = pool
        # After a lost reply, the next write takes a connection that was tested.
        self._is_doubtful = False

    @classmethod
    async def open(cls, settings: Settings) -> Connections:
        """Connects, and creates or migrates the tables if necessary."""
        options = _options(settings)
        first = await _connected(settings, options)
        try:
            link = Link(first, settings, settings.timeout * _SLOW)
            if await schema.applied(link) < schema.VERSION:
                await _transaction(link, schema.migrate, ())
            [(level,)] = await link.fetch("SELECT current_setting('default_transaction_isolation')")
        except BaseException:
            await first.close()
            raise
        if level != "read committed":
            options["options"] = f"{options.get('options', '')} {_READ_COMMITTED}".strip()
            await first.close()

        async def connect() -> Connection:
            return await psycopg.AsyncConnection.connect(**options)

        pool = Pool(connect, settings.connections, settings.timeout)
        pool.keep(first)
        return cls(settings, pool)

    async def close(self) -> None:
        """Closes all idle connections; those in use are closed when returned."""
        await self._pool.close()

    # --- three kinds of operations

    async def read(self, work: Work[P, T], *arguments: P.args, **_none: P.kwargs) -> T:
        """Runs a read; retries it if the connection breaks."""
        return await self._read(work, arguments, self._settings.timeout)

    async def read_slowly(self, work: Work[P, T], *arguments: P.args, **_none: P.kwargs) -> T:
        """Like `read`, with a long timeout."""
        return await self._read(work, arguments, self._settings.timeout * _SLOW)

    async def send(self, work: Work[P, T], *arguments: P.args, **_none: P.kwargs) -> T:
        """Runs a write of one statement."""
        return await self._write(_statement, work, arguments, self._settings.timeout)

    async def write(self, work: Work[P, T], *arguments: P.args, **_none: P.kwargs) -> T:
        """Runs a function in a transaction."""
        return await self._write(_transaction, work, arguments, self._settings.timeout)

    async def write_slowly(self, work: Work[P, T], *arguments: P.args, **_none: P.kwargs) -> T:
        """Like `write`, with a long timeout."""
        return await self._write(_transaction, work, arguments, self._settings.timeout * _SLOW)

    async def _read(
        self, work: Callable[..., Awaitable[T]], arguments: tuple[Any, ...], seconds: float
    ) -> T:
        failed: StoreError | None = None
        for _ in range(_ATTEMPTS):
            try:
                return await self._once(work, arguments, seconds, failed)
            except Lost as error:
                failed = error
        raise failed or Lost(self.name)

    async def _write(
        self,
        way: Callable[..., Awaitable[T]],
        work: Callable[..., Awaitable[T]],
        arguments: tuple[Any, ...],
        seconds: float,
    ) -> T:
        failed: StoreError | None = Lost(self.name) if self._is_doubtful else None
        for _ in range(_ATTEMPTS):
            try:
                made = await self._once(way, (work, arguments), seconds, failed)
            except LostReply:
                self._is_doubtful = True
                raise
            except (Lost, Refused) as error:  # nothing was written
                if isinstance(error, Refused) and error.state not in AGAIN:
                    raise
                failed = error
            else:
                self._is_doubtful = False
                return made
        raise failed or Lost(self.name)

    # --- borrowing a connection

    async def _once(
        self,
        work: Callable[..., Awaitable[T]],
        arguments: tuple[Any, ...],
        seconds: float,
        failed: StoreError | None = None,
    ) -> T:
        # After a restart of the server, all idle connections are broken. The first attempt takes
        # any connection, for speed; later ones test it before use.
        connection = await (self._taken() if failed is None else self._checked())
        link = Link(connection, self._settings, seconds)
        problem: StoreError | None = None
        try:
            return await work(link, *arguments)
        except StoreError as error:
            problem = error
            raise
        finally:
            await link.end(problem)
            await self._pool.give(connection)

    async def _taken(self) -> Connection:
        try:
            return await self._pool.take()
        except Exhausted:
            reason = (
                f"no connection within {self._settings.timeout:g} seconds; the server does not"
                f" respond, or all {self._settings.connections} connections are in use"
            )
        except Closed:
            reason = "it is closed"
        raise Unreachable(self.name, reason)

    async def _checked(self) -> Connection:
        deadline = monotonic() + self._settings.timeout
        while monotonic() < deadline:
            connection = await self._taken()
            link = Link(connection, self._settings, self._settings.timeout)
            works = False
            try:
                await link.fetch("SELECT 1")
                works = True
            except (Lost, Late):
                await connection.close()
            finally:
                if not works:
                    await self._pool.give(connection)
            if works:
                return connection
        raise Unreachable(self.name, "new connections break immediately")

    @property
    def name(self) -> str:
        """The name of the store."""
        return self._settings.name


async def _transaction(link: Link, work: Callable[..., Awaitable[T]], arguments: Any) -> T:
    await link.begin()
    try:
        result = await work(link, *arguments)
    except Lost:
        raise
    except StoreError:
        with suppress(StoreError):
            await link.run("ROLLBACK")
        raise
    await _statement(link, Link.run, ("COMMIT",))
    return result


async def _statement(link: Link, work: Callable[..., Awaitable[T]], arguments: Any) -> T:
    """Runs what is done when its answer arrives, and perhaps if it does not."""
    try:
        return await work(link, *arguments)
    except Lost:
        lost = LostReply(str(Lost(link.name, UNKNOWN)))
    except Late as error:
        outcome = NOTHING if link.is_idle else UNKNOWN  # the ledger looks whether it was done
        lost = LostReply(str(Late(link.name, error.seconds, outcome)), is_repeatable=False)
    raise lost


class _Context:
    """The adapters for new connections, in the form psycopg expects."""

    connection = None

    def __init__(self, adapters: AdaptersMap) -> None:
        self.adapters = adapters


async def _connected(settings: Settings, options: dict[str, Any]) -> Connection:
    try:
        return await psycopg.AsyncConnection.connect(**options)
    except psycopg.Error as error:
        reason = str(error).strip().partition("\n")[0]
    raise Unreachable(settings.name, _without_secrets(reason, settings.url, options))


def _without_secrets(reason: str, url: str, options: dict[str, Any]) -> str:
    """The library's message, unless it may quote an unescaped password (`p@ss`)."""
    if urlsplit(url).netloc.count("@") > 1:
        return "the URL has more than one @; write @ in a user or password as %40"
    password = options.get("password")
    return reason.replace(password, "***") if password else reason


def _options(settings: Settings) -> dict[str, Any]:
    """The connection options; parameters in the URL take precedence."""
    try:
        given = conninfo_to_dict(settings.url)
    except psycopg.Error:
        given = None  # psycopg's message may quote the password
    if given is None:
        msg = "the URL of a PostgreSQL store is invalid; escape special characters as %xx"
        raise InvalidInputError(msg)
    seconds = max(2, round(settings.timeout))
    adapters = AdaptersMap(psycopg.adapters)
    # One type for all integers: otherwise every size would be another prepared statement.
    adapters.register_dumper(int, Int8Dumper)
    return {
        "fallback_application_name": "dragoman",
        "connect_timeout": min(seconds, _CONNECT),
        # Detects a peer that vanished silently.
        "keepalives_idle": seconds,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": seconds * 1000,
        **given,
        "autocommit": True,
        "prepare_threshold": 0 if settings.prepared else None,
        "context": _Context(adapters),
    }


# --- parses a store's URL: the address of the server, and settings


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
