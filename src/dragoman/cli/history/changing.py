"""`history fork`, `delete`, `forget`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from dragoman.cli.endings import USAGE, Ending
from dragoman.cli.history.stores import (
    counted,
    filter_of,
    filter_options,
    print_json,
    session_named,
    sessions_of,
    store_option,
    with_store,
)

if TYPE_CHECKING:
    from dragoman.history.storage.protocol import Storage

yes_option = click.option("--yes", is_flag=True, help="Don't ask.")


@click.command()
@click.argument("session")
@click.argument("message")
@store_option
def fork(session: str, message: str, store: str | None) -> None:
    """Go on from an earlier MESSAGE, given by its id, on a branch of its own."""

    async def work(storage: Storage) -> None:
        from dragoman.history.chat import ChatHistory

        found = await session_named(storage, session)
        history = await ChatHistory.open(found.identity, storage)
        branch = await history.fork(message)
        print_json({
            "session": found.identity.digest,
            "branch": branch.number,
            "forked_at": branch.forked_at,
        })  # fmt: skip

    with_store(store, work)


@click.command()
@click.argument("sessions", nargs=-1, metavar="SESSION...")
@store_option
@filter_options
@yes_option
def delete(sessions: tuple[str, ...], store: str | None, *, yes: bool, **names: str | None) -> None:
    """Delete sessions: those named, or all that the options choose."""

    async def work(storage: Storage) -> None:
        from dragoman.history.storage.protocol import EVERYTHING

        which = filter_of(names)
        if bool(sessions) is (which != EVERYTHING):
            raise Ending(USAGE, "name the sessions, or choose them by an option")
        found = [await session_named(storage, key) for key in sessions]
        found = found or await sessions_of(storage, which)
        _confirm(f"Delete {counted(len(found), 'session')}?", yes=yes)
        deleted = [await storage.delete(session.identity) for session in found]
        click.echo(f"{counted(sum(deleted), 'session')} deleted", err=True)

    with_store(store, work)


@click.command()
@click.argument("user")
@store_option
@yes_option
def forget(user: str, store: str | None, *, yes: bool) -> None:
    """Erase everything of a USER, and say what can't be reached."""

    async def work(storage: Storage) -> None:
        _confirm("Erase all sessions of this user for good?", yes=yes)
        erased = await storage.forget(user)
        print_json({
            "sessions": erased.sessions,
            "messages": erased.messages,
            "may_remain_in": list(erased.remains),
        })  # fmt: skip

    with_store(store, work)


def _confirm(question: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise Ending(USAGE, "there is nobody to ask: say --yes")
    if not click.confirm(question, err=True):
        raise Ending(USAGE, "nothing was changed")
