"""`history list`: a few facts of each session, without reading it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

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
from dragoman.cli.screen import clipped

if TYPE_CHECKING:
    from dragoman.cli.cards import Card
    from dragoman.history.branch_paths import Stretch
    from dragoman.history.storage.protocol import Row, Session, Storage
    from dragoman.model.messages import Message

_MOST = 50  # sessions in a table, if nobody says otherwise
_FIRST, _LAST = 3, 5  # messages that are looked at
_AT_ONCE = 16
_LONGEST = 200  # characters of a first line


class Listed(NamedTuple):
    """A session, and what tells people which one it is."""

    session: Session
    messages: int
    model: str | None
    first_line: str | None
    unreadable: str | None
    """Why there is no first line to show: it is encrypted, or damaged."""


@click.command("list")
@store_options
@filter_options
@click.option("--limit", type=click.IntRange(1),
              help=f"At most this many; a table shows {_MOST} unless told otherwise.")  # fmt: skip
@json_option
def list_sessions(
    store: Place, limit: int | None, *, as_json: bool | None, **names: str | None
) -> None:
    """List sessions, the most recent first.

    Shows the first line of each, the last model, the number of messages, and the time of the last
    one.
    """

    async def work(storage: Storage) -> None:
        is_json = wants_json(as_json)
        sessions = await sessions_of(storage, filter_of(names))
        found = await looked_at(storage, sessions[: limit if limit or is_json else _MOST])
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
    """For people: a card each on a terminal, whose lines are short; else a line each."""
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
    print_found(("session", "last written (UTC)", "messages", "model", "names", "first line"), rows)


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
    return listed.first_line or ""


# --- looking at both ends of a session


async def looked_at(storage: Storage, sessions: Sequence[Session]) -> list[Listed]:
    """What there is to say of each; some at once, since a server may be far away."""
    from dragoman.cli.screen import counting

    found: list[Listed] = []
    with counting(len(sessions), "sessions") as advance:
        for start in range(0, len(sessions), _AT_ONCE):
            some = sessions[start : start + _AT_ONCE]
            found += await asyncio.gather(*(_listed(storage, session) for session in some))
            for _ in some:
                advance()
    return found


async def _listed(storage: Storage, session: Session) -> Listed:
    from dragoman.errors import ConfigError, Corrupt, NotFound

    messages = await storage.count(session.identity)
    try:
        first, last = await _ends(storage, session, messages)
    except ConfigError:  # a key that is not among those given
        return Listed(session, messages, None, None, "encrypted with another key")
    except (Corrupt, NotFound):  # a branch that leads nowhere; `verify` tells
        return Listed(session, messages, None, None, "damaged")
    model = next((row.model for row in reversed(last) if row.model), None)
    return Listed(session, messages, model, *_first_line(first))


async def _ends(storage: Storage, session: Session, messages: int) -> tuple[list[Row], list[Row]]:
    from dragoman.history.branch_paths import read_path, read_tail, stretches

    path = stretches(session, session.active)
    if messages <= _FIRST + _LAST:
        rows = await read_path(storage, session.identity, path)
        return rows[:_FIRST], rows
    first = await _beginning(storage, session, path)
    return first, await read_tail(storage, session.identity, path, _LAST)


async def _beginning(storage: Storage, session: Session, path: list[Stretch]) -> list[Row]:
    rows: list[Row] = []
    for branch, upto in path:
        missing = _FIRST - len(rows)
        if missing <= 0:
            break
        rows += await storage.rows(session.identity, branch=branch, upto=upto, limit=missing)
    return rows


def _first_line(rows: Sequence[Row]) -> tuple[str | None, str | None]:
    """What the user said first, or else anybody; and why it can't be told."""
    from dragoman.errors import Corrupt
    from dragoman.history.records import is_sealed, message_of
    from dragoman.model.roles import Role

    messages: list[Message] = []
    unreadable: str | None = None
    for row in rows:
        try:
            messages.append(message_of(row.body))
        except Corrupt:
            unreadable = unreadable or ("encrypted" if is_sealed(row.body) else "damaged")
    said = [message for message in messages if message.role is Role.USER]
    said += [m for m in messages if m.role not in {Role.SYSTEM, Role.DEVELOPER}]
    said += messages
    if said:
        return _line_of(said[0]), None
    return (None, unreadable) if unreadable else ("", None)


def _line_of(message: Message) -> str:
    from dragoman.model.parts import Text

    text = message.text.lstrip()
    if text:
        return clipped(text[: _LONGEST + 1].splitlines()[0].rstrip(), _LONGEST)
    kinds = [type(part).__name__ for part in message.parts if not isinstance(part, Text)]
    return f"[{kinds[0]}]" if kinds else ""
