"""What the commands have in common: the store, the sessions that are meant, how it is printed."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dragoman.cli.endings import USAGE, Ending, clean_ending

if TYPE_CHECKING:  # loaded when a command runs: `dragoman --help` needs none of it
    from dragoman.history.identity import SessionIdentity
    from dragoman.history.storage.protocol import Filter, Session, Storage

FIELDS = ("agent", "chat", "user", "group", "scope")
F = TypeVar("F", bound=Callable[..., Any])
_SHORTEST = 4

store_option = click.option("--store", metavar="URL", help="Where the conversations are kept.")
json_option = click.option(
    "--json/--table", "as_json", default=None, help="Print JSON, or a table, wherever it goes."
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


def with_store(url: str | None, work: Callable[[Storage], Coroutine[Any, Any, None]]) -> None:
    """Do something with an open store; what goes wrong ends the command cleanly."""

    async def run() -> None:
        from dragoman.history.places import storage_at

        storage, _ = storage_at(url)
        await storage.open()
        try:
            await work(storage)
        finally:
            await storage.close()

    with clean_ending():
        asyncio.run(run())


async def session_named(storage: Storage, key: str) -> Session:
    """The session whose key begins so."""
    if len(key) < _SHORTEST or not set(key) <= set("0123456789abcdef"):
        msg = f"a session is named by at least {_SHORTEST} digits of its key; see `list`"
        raise Ending(USAGE, msg)
    # Everything above the key itself and below its successor; the key itself is above its
    # predecessor.
    before = f"{int(key, 16) - 1:0{len(key)}x}g" if int(key, 16) else ""
    found = [s for s in await storage.sessions(limit=3, after=before) if _key(s).startswith(key)]
    if len(found) != 1:
        msg = "no session has such a key" if not found else "more than one session has such a key"
        raise Ending(USAGE, msg)
    return found[0]


async def sessions_of(storage: Storage, which: Filter) -> list[Session]:
    """The sessions, the last written to first."""
    from dragoman.history.transfer import every_session

    found = [session async for session in every_session(storage, which)]
    return sorted(found, key=lambda session: session.updated_at, reverse=True)


def wants_json(as_json: bool | None) -> bool:  # noqa: FBT001 - what click gives
    """Whether to print JSON: asked for, or not on a terminal."""
    return not sys.stdout.isatty() if as_json is None else as_json


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def _key(session: Session) -> str:
    return session.identity.digest


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
