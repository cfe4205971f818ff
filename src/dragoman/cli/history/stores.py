"""What the commands have in common: the store, the sessions that are meant, how it is printed."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

import click

from dragoman.cli.endings import BROKEN, FILES, USAGE, Ending, clean_ending

if TYPE_CHECKING:  # loaded when a command runs: `dragoman --help` needs none of it
    from dragoman.errors import DragomanError
    from dragoman.history.identity import SessionIdentity
    from dragoman.history.storage.protocol import Filter, Session, Storage

FIELDS = ("agent", "chat", "user", "group", "scope")
F = TypeVar("F", bound=Callable[..., Any])
_SHORTEST = 4

store_option = click.option(
    "--store",
    metavar="URL",
    help="Where the conversations are kept; by default $DRAGOMAN_HISTORY, or a file of yours.",
)


def filter_options(command: F) -> F:
    """Options for which sessions are meant."""
    for field in reversed(FIELDS):
        named = click.option(f"--{field}", help=f"Only sessions of this {field}.")
        command = named(command)
    return command


def filter_of(options: dict[str, Any]) -> Filter:
    """The filter that the options ask for."""
    from dragoman.history.storage.protocol import Filter

    return Filter(**{field: options[field] for field in FIELDS if options.get(field) is not None})


def with_store(
    url: str | None, work: Callable[[Storage], Coroutine[Any, Any, None]], *, makes: bool = False
) -> None:
    """Do something with an open store; what goes wrong ends the command cleanly.

    Only where the command `makes` one may there be no store yet: a name that was mistyped must
    not look like an empty store, nor become one.
    """

    async def run() -> None:
        from dragoman.history.places import storage_at

        storage, _ = storage_at(url)
        if not makes:
            _expect_there(url)
        await storage.open()
        try:
            await work(storage)
        finally:
            await storage.close()

    # What the library warns of is said by the command, once.
    logging.getLogger("dragoman.history").addHandler(logging.NullHandler())
    with clean_ending():
        _run(run())


def _run(work: Coroutine[Any, Any, None]) -> None:
    import asyncio

    from dragoman.errors import DragomanError

    try:
        asyncio.run(work)
    except DragomanError as error:
        raise Ending(code_of(error), str(error)) from None


def code_of(error: DragomanError) -> int:
    """The exit code for what went wrong with a store."""
    from dragoman.errors import ConfigError, Conflict, Corrupt, InvalidInputError, NotFound

    match error:
        case ConfigError() | InvalidInputError() | NotFound():
            return USAGE
        case Corrupt() | Conflict():
            return BROKEN
        case _:
            return FILES  # a store that can't be reached, or is full, is as a file that is


def file_of(url: str | None) -> Path | None:
    """The file or directory that a store is in; None where it is on a server."""
    from dragoman.history.places import VARIABLE, default_file

    parts = urlsplit(url or os.environ.get(VARIABLE) or f"sqlite:///{default_file()}")
    path = unquote(parts.path)
    match parts.scheme:
        case "sqlite":
            return Path(path.removeprefix("/"))
        case "file":
            return Path(path)
        case _:
            return None


def _expect_there(url: str | None) -> None:
    path = file_of(url)
    if path is not None and not path.exists():
        msg = f"{path}: there is no store; `history import` makes one, and so does a ChatHistory"
        raise Ending(FILES, msg)


async def session_named(storage: Storage, digest: str) -> Session:
    """The session whose digest begins so."""
    digest = digest.lower()
    if len(digest) < _SHORTEST or not set(digest) <= set("0123456789abcdef"):
        msg = (
            f"a session is named by the first digits of its digest, {_SHORTEST} at least, as"
            " `history list` shows them"
        )
        raise Ending(USAGE, msg)
    # Everything above the digest itself and below its successor; the digest itself is above its
    # predecessor.
    before = f"{int(digest, 16) - 1:0{len(digest)}x}g" if int(digest, 16) else ""
    found = await storage.sessions(limit=3, after=before)
    return _only([s for s in found if s.identity.digest.startswith(digest)], "such a digest")


async def session_meant(storage: Storage, digest: str | None, options: dict[str, Any]) -> Session:
    """The session that is named by its digest, or by the options for its names."""
    from dragoman.history.storage.protocol import EVERYTHING

    which = filter_of(options)
    if (digest is None) is (which == EVERYTHING):
        raise Ending(USAGE, "name the session by its digest, or by options such as --chat")
    if digest is not None:
        return await session_named(storage, digest)
    return _only(await storage.sessions(which, limit=2), "these names")


def _only(found: list[Session], what: str) -> Session:
    if len(found) != 1:
        many = f"more than one session has {what}; `history list` shows them"
        raise Ending(USAGE, many if found else f"no session has {what}")
    return found[0]


async def sessions_of(storage: Storage, which: Filter) -> list[Session]:
    """The sessions, the last written to first."""
    from dragoman.history.transfer import every_session

    found = [session async for session in every_session(storage, which)]
    return sorted(found, key=lambda session: session.updated_at, reverse=True)


def names_of(identity: SessionIdentity) -> dict[str, str]:
    """The names that an identity has."""
    given = {field: getattr(identity, field) for field in FIELDS}
    return {field: name for field, name in given.items() if name is not None}


def shown(identity: SessionIdentity) -> str:
    """The names, on a line."""
    return " ".join(f"{field}={name}" for field, name in names_of(identity).items())


def moment(at: float) -> str:
    """A time, in UTC, to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def counted(count: int, noun: str) -> str:
    """A number of things."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
