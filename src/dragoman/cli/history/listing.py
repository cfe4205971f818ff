"""`history list`: a summary of each session, without reading its messages."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.history.stores import (
    Place,
    called,
    counted,
    filter_of,
    filter_options,
    moment,
    names_of,
    sessions_of,
    shown,
    store_options,
    with_store,
)
from dragoman.cli.printing import json_option, print_found, print_json, wants_json

if TYPE_CHECKING:
    from dragoman.cli.cards import Card
    from dragoman.history.session_summaries import Listed
    from dragoman.history.storage.protocol import Storage

_LIMIT = 50  # default number of sessions in a table


@click.command("list")
@store_options
@filter_options
@click.option("--limit", type=click.IntRange(1),
              help=f"Maximum number of sessions.  [default in tables: {_LIMIT}]")  # fmt: skip
@json_option
def list_sessions(
    store: Place, limit: int | None, *, as_json: bool | None, **names: str | None
) -> None:
    """List sessions, most recent first.

    Shows the title or the first line, the last model, the number of messages and the time of the
    last message.
    """

    async def work(storage: Storage) -> None:
        from dragoman.cli.screen import counting
        from dragoman.history.session_summaries import looked_at

        is_json = wants_json(as_json)
        sessions = await sessions_of(storage, filter_of(names))
        shown = sessions[: limit if limit or is_json else _LIMIT]
        with counting(len(shown), "sessions") as advance:
            found = await looked_at(storage, shown, advance)
        if is_json:
            print_json([_described(each) for each in found])
            return
        _print(found)
        if limit is None and len(found) < len(sessions):
            click.echo(
                f"the latest {len(found)} of {counted(len(sessions), 'session')};"
                f" --limit {len(sessions)} shows all",
                err=True,
            )

    with_store(store, work, blocking=True)


def _described(listed: Listed) -> dict[str, Any]:
    session = listed.session
    return {
        "session": session.identity.digest,
        "identity": names_of(session.identity),
        "title": listed.title,
        "first_line": listed.first_line,
        "unreadable": listed.unreadable,
        "model": listed.model,
        "messages": listed.messages,
        "version": session.version,
        "branches": len(session.forks) + 1,
        "created_at": session.created_at,
        "updated_at": session.updated_at,
    }


def _print(found: Sequence[Listed]) -> None:
    """Print a card per session on a terminal; otherwise a line per session."""
    if found and sys.stdout.isatty():
        from dragoman.cli.cards import print_cards

        print_cards([_card(each) for each in found])
        return
    rows = [
        (
            each.session.identity.digest[:12], moment(each.session.updated_at),
            str(each.messages), each.model or "", shown(each.session.identity), _text(each),
        )
        for each in found
    ]  # fmt: skip
    heads = ("session", "last written (UTC)", "messages", "model", "names", "title or first line")
    print_found(heads, rows)


def _card(listed: Listed) -> Card:
    from dragoman.cli.cards import Card

    identity = listed.session.identity
    facts = (
        identity.digest[:12],
        f"{moment(listed.session.updated_at)[:16]} UTC",  # to the minute
        counted(listed.messages, "message"),
        listed.model or "",
    )
    return Card(facts, called(identity), _text(listed))


def _text(listed: Listed) -> str:
    if listed.unreadable is not None:
        return f"({listed.unreadable})"
    return listed.title or listed.first_line or ""
