"""`history fork`, `branches`, `switch`, `delete`, `forget`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.exit_codes import INTERRUPTED, USAGE, Ending
from dragoman.cli.history.naming import session_named
from dragoman.cli.history.stores import (
    Place,
    called,
    counted,
    filter_of,
    filter_options,
    sessions_of,
    store_options,
    with_store,
)
from dragoman.cli.printing import json_option, print_found, print_json, wants_json
from dragoman.cli.screen import clipped, counting, harmless_line
from dragoman.cli.spinner import waiting

if TYPE_CHECKING:
    from dragoman.history.branches import Branch
    from dragoman.history.identity import SessionIdentity
    from dragoman.history.storage.protocol import Storage

_MAX_NAMED = 5  # sessions listed by name
yes_option = click.option("--yes", is_flag=True, help="Don't ask for confirmation.")


@click.command()
@click.argument("session")
@click.argument("message")
@store_options
@json_option
def fork(session: str, message: str, store: Place, *, as_json: bool | None) -> None:
    """Create a branch after an earlier message, and make it the active one.

    MESSAGE is an id, as listed by `show --ids`. `switch` goes back to the old branch.
    """

    async def work(storage: Storage) -> None:
        from dragoman.history.chat import ChatHistory

        found = await session_named(storage, session)
        history = await ChatHistory.open(found.identity, storage)
        branch = await history.fork(message)
        if not wants_json(as_json):
            click.echo(f"created branch {branch.number}, which is now active", err=True)
            return
        print_json({
            "session": found.identity.digest,
            "branch": branch.number,
            "forked_at": branch.forked_at,
        })  # fmt: skip

    with_store(store, work)


@click.command()
@click.argument("session")
@store_options
@json_option
def branches(session: str, store: Place, *, as_json: bool | None) -> None:
    """List the branches of a session."""

    async def work(storage: Storage) -> None:
        from dragoman.history.branches import branches_of

        found = await session_named(storage, session)
        made = await branches_of(storage, found.identity, found)
        if wants_json(as_json):
            print_json([_described(branch) for branch in made])
            return
        rows = [
            (str(each.number), "yes" if each.is_active else "", each.forked_at or "",
             each.leaf or "")
            for each in made
        ]  # fmt: skip
        print_found(("branch", "active", "forked at", "last message"), rows)

    with_store(store, work)


def _described(branch: Branch) -> dict[str, Any]:
    return {
        "branch": branch.number,
        "active": branch.is_active,
        "forked_at": branch.forked_at,
        "last_message": branch.leaf,
    }


@click.command()
@click.argument("session")
@click.argument("branch", type=click.IntRange(0))
@store_options
def switch(session: str, branch: int, store: Place) -> None:
    """Make another branch the active one."""

    async def work(storage: Storage) -> None:
        found = await session_named(storage, session)
        await storage.activate(found.identity, branch)
        click.echo(f"branch {branch} is now active", err=True)

    with_store(store, work)


@click.command()
@click.argument("sessions", nargs=-1, metavar="SESSION...")
@store_options
@filter_options
@yes_option
def delete(sessions: tuple[str, ...], store: Place, *, yes: bool, **names: str | None) -> None:
    """Delete sessions: those named, or all that match the options."""

    async def work(storage: Storage) -> None:
        from dragoman.history.storage.protocol import EVERYTHING

        which = filter_of(names)
        if bool(sessions) is (which != EVERYTHING):
            raise Ending(USAGE, "name the sessions, or select them with an option such as --user")
        named = [await session_named(storage, name) for name in sessions]
        found = list(dict.fromkeys(each.identity for each in named))
        found = found or [each.identity for each in await sessions_of(storage, which)]
        _confirm(f"Delete {_told(found)}?", yes=yes)
        deleted = 0
        with counting(len(found), "sessions") as advance:
            for identity in found:
                deleted += await storage.delete(identity)
                advance()
        click.echo(f"{counted(deleted, 'session')} deleted", err=True)

    with_store(store, work)


@click.command()
@click.argument("user")
@store_options
@yes_option
def forget(user: str, store: Place, *, yes: bool) -> None:
    """Erase all data of a user, and report what could not be erased."""

    async def work(storage: Storage) -> None:
        found = await sessions_of(storage, filter_of({"user": user}))
        _confirm(f"Erase {counted(len(found), 'session')} of this user for good?", yes=yes)
        with waiting("Erasing …", after=1.0):
            erased = await storage.forget(user)
        print_json({
            "sessions": erased.sessions,
            "messages": erased.messages,
            "may_remain_in": list(erased.remains),
        })  # fmt: skip

    with_store(store, work)


def _told(identities: Sequence[SessionIdentity]) -> str:
    """A description of the sessions: a few by name, more by number."""
    count = counted(len(identities), "session")
    if not 0 < len(identities) <= _MAX_NAMED:
        return count
    names = (harmless_line(clipped(called(identity), 60)) for identity in identities)
    return f"{count} ({', '.join(names)})"


def _confirm(question: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise Ending(USAGE, "there is no terminal to ask on; confirm with --yes")
    if not _answer(question):
        raise Ending(USAGE, "nothing was changed")


def _answer(question: str) -> bool:
    # The event loop handles Ctrl-C itself, and would only notice it after the answer.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        pass
    finally:
        signal.signal(signal.SIGINT, before)
    raise Ending(INTERRUPTED, "interrupted; nothing was changed")
