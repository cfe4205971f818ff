"""Shared parts of the history commands: the store, session filters and output."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

import click

from dragoman.cli.exit_codes import BROKEN, FILES, USAGE, Ending, clean_ending
from dragoman.cli.history.keys import NEEDED, current_key, key_options, keys_given

if TYPE_CHECKING:  # loaded when a command runs: `dragoman --help` doesn't need it
    from dragoman.errors import DragomanError
    from dragoman.history.identity import SessionIdentity
    from dragoman.history.storage.protocol import Filter, Session, Storage

FIELDS = ("agent", "chat", "user", "group", "scope")
F = TypeVar("F", bound=Callable[..., Any])


class Place(NamedTuple):
    """The store of a command, as given on the command line."""

    url: str | None = None
    key_files: tuple[str, ...] = ()
    current_key: str | None = None
    accept_plain: bool = False


USUAL = Place()


def store_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for the store and its keys; the command receives a `Place`."""

    @wraps(command)
    def placed(
        *arguments: Any, store: str | None, key_files: tuple[str, ...], current_key: str | None,
        accept_plain: bool, **options: Any,
    ) -> None:  # fmt: skip
        place = Place(store, key_files, current_key, accept_plain)
        command(*arguments, store=place, **options)

    url = click.option(
        "--store",
        metavar="URL",
        help="Store URL. Default: $DRAGOMAN_HISTORY, or a file in your data directory.",
    )
    made = placed
    for option in reversed((url, *key_options)):
        made = option(made)
    return made


def filter_options(command: F) -> F:
    """Add the options that select sessions."""
    for field in reversed(FIELDS):
        named = click.option(f"--{field}", help=f"Only sessions of this {field}.")
        command = named(command)
    return command


def filter_of(options: dict[str, Any]) -> Filter:
    """The filter selected by the options."""
    from dragoman.history.storage.protocol import Filter

    return Filter(**{field: options[field] for field in FIELDS if options.get(field) is not None})


def storage_of(place: Place, *, blocking: bool = False) -> Storage:
    """The store, not opened yet; with its keys, if given."""
    from dragoman.history.storage_urls import storage_at

    storage, _ = storage_at(place.url, blocking=blocking)
    keys = keys_given(place.key_files)
    if keys:
        from dragoman.cli.history.keyed import KeyedStorage

        current = current_key(keys, place.current_key)
        return KeyedStorage(storage, keys=keys, current=current, accept_plain=place.accept_plain)
    if place.current_key is not None or place.accept_plain:
        option = "--accept-plain" if place.accept_plain else "--current-key"
        raise Ending(USAGE, f"{option} requires keys: {NEEDED}")
    return storage


def with_store(
    place: Place, work: Callable[[Storage], Coroutine[Any, Any, None]], *, makes: bool = False,
    blocking: bool = False,
) -> None:  # fmt: skip
    """Run `work` with the open store; errors end the command with a message.

    Unless the command `makes` a store, it must exist: a mistyped name must neither look like an
    empty store nor create one. `blocking` is for many small queries: stores that can answer them in
    this thread.
    """

    async def run() -> None:
        storage = storage_of(place, blocking=blocking)
        if not makes:
            _expect_there(place.url)
        await storage.open()
        try:
            await work(storage)
        finally:
            await storage.close()

    # The command itself reports what the library would log as a warning.
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
    """The exit code for a store error."""
    from dragoman.errors import ConfigError, Conflict, Corrupt, InvalidInputError, NotFound

    match error:
        case ConfigError() | InvalidInputError() | NotFound():
            return USAGE
        case Corrupt() | Conflict():
            return BROKEN
        case _:
            return FILES  # an unreachable or full store counts as a file error


def file_of(url: str | None) -> Path | None:
    """The file or directory of a store; None if it is on a server."""
    from dragoman.history.storage_urls import VARIABLE, default_file

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
        msg = f"{path}: there is no store; `dragoman ask`, `chat` and `history import` create one"
        raise Ending(FILES, msg)


async def sessions_of(storage: Storage, which: Filter) -> list[Session]:
    """The sessions, most recently written first."""
    from dragoman.history.transfer import every_session

    found = [session async for session in every_session(storage, which)]
    return sorted(found, key=lambda session: session.updated_at, reverse=True)


async def lines_in(storage: Storage, which: Filter | None = None) -> int:
    """The approximate number of sessions and messages, deleted ones included."""
    from dragoman.history.storage.protocol import EVERYTHING
    from dragoman.history.transfer import every_session

    wanted = EVERYTHING if which is None else which
    return sum([session.last_seq + 1 async for session in every_session(storage, wanted)])


def names_of(identity: SessionIdentity) -> dict[str, str]:
    """The fields of an identity that are set."""
    given = {field: getattr(identity, field) for field in FIELDS}
    return {field: name for field, name in given.items() if name is not None}


def shown(identity: SessionIdentity) -> str:
    """The fields and their values, on one line."""
    return " ".join(f"{field}={name}" for field, name in names_of(identity).items())


def called(identity: SessionIdentity) -> str:
    """The values alone, as a session name."""
    return "/".join(names_of(identity).values())


def moment(at: float) -> str:
    """A time in UTC, to the second; "unknown" for an invalid number."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError, TypeError):
        return "unknown"


def counted(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
