"""`history verify` and `repair`."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from dragoman.cli.exit_codes import FOUND, Ending, complain
from dragoman.cli.history.keys import NEEDED
from dragoman.cli.history.stores import (
    Place,
    called,
    counted,
    lines_in,
    names_of,
    store_options,
    with_store,
)
from dragoman.cli.printing import json_option, print_json, wants_json
from dragoman.cli.screen import harmless_line

if TYPE_CHECKING:
    from dragoman.history.identity import SessionIdentity
    from dragoman.history.storage.protocol import Session, Storage


# The prefixes of store messages about a session, and about a message in it.
_SESSION = re.compile(r"([0-9a-f]{40})(?:\.jsonl)?(?::\d+)?: (.*)", re.DOTALL)
_MESSAGE = re.compile(r"message (\d{1,18}): (.*)", re.DOTALL)


class Problem(NamedTuple):
    """A problem of a store, or of a message in a session."""

    identity: SessionIdentity | None
    seq: int | None
    problem: str
    is_mendable: bool = False
    """Whether moving records aside, or recounting, repairs it."""


class Encrypted:
    """Counts records that can't be checked without their keys; they are not problems."""

    count = 0


@click.command()
@store_options
@json_option
def verify(store: Place, *, as_json: bool | None) -> None:
    """Check every record, and report unreadable ones.

    Without keys, encrypted records are counted but not read.
    """

    async def work(storage: Storage) -> None:
        encrypted = Encrypted()
        found = await _looked_for(storage, encrypted)
        _report(found, encrypted, as_json=as_json)
        if found:
            raise Ending(FOUND)

    with_store(store, work)


@click.command()
@store_options
@json_option
def repair(store: Place, *, as_json: bool | None) -> None:
    """Move unreadable records aside, and correct the counters.

    They are moved, not deleted: to the table `aside` (SQLite, PostgreSQL), to FILE.aside (files),
    or to a key that ends in `aside` (Redis). Without keys, encrypted records are left alone: they
    can't be checked.
    """
    from dragoman.errors import ConfigError

    async def work(storage: Storage) -> None:
        encrypted = Encrypted()
        found = await _looked_for(storage, encrypted)
        broken: dict[SessionIdentity, list[int]] = {}
        for problem in found:
            if problem.identity is not None and problem.is_mendable:
                seqs = broken.setdefault(problem.identity, [])
                seqs += [] if problem.seq is None else [problem.seq]
        moved = 0
        for identity, seqs in broken.items():
            with suppress(ConfigError):  # a missing key is reported, and is no damage
                moved += await storage.set_aside(identity, seqs, "unreadable when repaired")
        click.echo(f"{counted(moved, 'record')} moved aside", err=True)
        encrypted = Encrypted()
        left = await _looked_for(storage, encrypted)
        _report(left, encrypted, as_json=as_json)
        if left:
            raise Ending(FOUND)

    with_store(store, work)


async def _looked_for(storage: Storage, encrypted: Encrypted) -> list[Problem]:
    """All problems, with a progress bar meanwhile."""
    from dragoman.cli.screen import counting

    with counting(await lines_in(storage), "records") as advance:
        return [problem async for problem in _problems(storage, encrypted, advance)]


async def _problems(
    storage: Storage, encrypted: Encrypted, advance: Callable[[], None]
) -> AsyncIterator[Problem]:
    """Problems of the messages, then of the sessions, then of the store."""
    from dragoman.errors import NotFound
    from dragoman.history.branches import stretches
    from dragoman.history.storage.sealed.records import PLAIN
    from dragoman.history.transfer import every_session

    told: set[tuple[str, int | None]] = set()
    sessions: dict[str, SessionIdentity] = {}
    async for session in every_session(storage):
        advance()
        digest = session.identity.digest
        sessions[digest] = session.identity
        for fork in session.forks:
            try:
                stretches(session, fork.number)
            except NotFound:
                yield Problem(session.identity, None, f"branch {fork.number} has no valid parent")
        async for problem in _broken(storage, session, encrypted, advance):
            told.add((digest, problem.seq))
            yield problem
    for text in await storage.verify():
        whose, seq, what = _read(text)
        identity = sessions.get(whose)
        if identity is None:
            yield Problem(None, None, text)
        elif seq is None or (whose, seq) not in told:
            yield Problem(identity, seq, what, is_mendable=PLAIN not in what)


def _read(text: str) -> tuple[str, int | None, str]:
    """The session and message that a store's text is about, as far as it tells."""
    session = _SESSION.search(text)
    if session is None:
        return "", None, text
    message = _MESSAGE.match(session[2])
    if message is None:
        return session[1], None, session[2]
    return session[1], int(message[1]), message[2]


async def _broken(
    storage: Storage, session: Session, encrypted: Encrypted, advance: Callable[[], None]
) -> AsyncIterator[Problem]:
    """The unreadable messages of a session: those listed by `ChatHistory.damaged`."""
    from dragoman.cli.history.keyed import NOT_ENCRYPTED, KeyedStorage, is_plain_beneath
    from dragoman.errors import ConfigError, Corrupt
    from dragoman.history.records import is_sealed, message_in
    from dragoman.history.transfer import every_row

    try:
        async for row in every_row(storage, session):
            advance()
            try:
                message_in(row)
            except Corrupt as error:
                reason = str(error)
            else:
                continue
            if is_sealed(row.body) and not isinstance(storage, KeyedStorage):
                encrypted.count += 1
            elif await is_plain_beneath(storage, session.identity, row.id):
                yield Problem(session.identity, row.seq, NOT_ENCRYPTED)
            else:
                yield Problem(session.identity, row.seq, reason, is_mendable=True)
    except Corrupt as error:  # none of its messages is readable
        yield Problem(session.identity, None, str(error), is_mendable=True)
    except ConfigError as error:
        yield Problem(session.identity, None, str(error))


def _report(problems: list[Problem], encrypted: Encrypted, *, as_json: bool | None) -> None:
    if encrypted.count:
        what = counted(encrypted.count, "record")
        complain(f"{what} can't be checked (encrypted): {NEEDED}")
    if wants_json(as_json):
        print_json([_described(problem) for problem in problems])
        return
    if not problems:
        judged = "no other problems" if encrypted.count else "no problems"
        click.echo(judged, err=True)
        return
    _print(problems)


def _described(problem: Problem) -> dict[str, Any]:
    identity = problem.identity
    return {
        "session": "" if identity is None else identity.digest,
        "identity": None if identity is None else names_of(identity),
        "seq": problem.seq,
        "problem": problem.problem,
    }


def _print(problems: list[Problem]) -> None:
    """Print the problems by session."""
    by_session: dict[SessionIdentity | None, list[Problem]] = {}
    for problem in problems:
        by_session.setdefault(problem.identity, []).append(problem)
    for identity, found in by_session.items():
        head = "the store" if identity is None else f"{identity.digest[:12]}  {called(identity)}"
        click.echo(harmless_line(head))
        for each in found:
            place = "" if each.seq is None else f"message {each.seq}: "
            click.echo(f"  {place}{harmless_line(each.problem)}")
    sessions = len(by_session.keys() - {None})
    within = f" in {counted(sessions, 'session')}" if sessions else ""
    click.echo(f"{counted(len(problems), 'problem')}{within}", err=True)
