"""`history verify` and `repair`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, NamedTuple

import click

from dragoman.cli.endings import FOUND, Ending, complain
from dragoman.cli.history.stores import counted, session_named, store_option, with_store
from dragoman.cli.printing import json_option, print_json, wants_json

if TYPE_CHECKING:
    from dragoman.history.storage.protocol import Storage


class Problem(NamedTuple):
    """Something that is wrong with a store."""

    session: str
    seq: int | None
    problem: str


class Encrypted:
    """How many records can't be judged without their keys: they are no problem, and no repair."""

    count = 0


@click.command()
@store_option
@json_option
def verify(store: str | None, *, as_json: bool | None) -> None:
    """Read every record, and say which can't be read.

    Encrypted records are counted, not read: the commands have no keys.
    """

    async def work(storage: Storage) -> None:
        encrypted = Encrypted()
        found = [problem async for problem in _problems(storage, encrypted)]
        _report(found, encrypted, as_json=as_json)
        if found:
            raise Ending(FOUND)

    with_store(store, work)


@click.command()
@store_option
@json_option
def repair(store: str | None, *, as_json: bool | None) -> None:
    """Set aside the records that can't be read.

    They are kept, not deleted: in the table `aside` (SQLite, PostgreSQL), in FILE.aside (files),
    under a key that ends in `aside` (Redis). Encrypted records stay where they are: there is no
    telling here whether they are sound.
    """

    async def work(storage: Storage) -> None:
        by_session: dict[str, list[Problem]] = {}
        left: list[Problem] = []
        encrypted = Encrypted()
        async for problem in _problems(storage, encrypted):
            if problem.seq is None:
                left.append(problem)
            else:
                by_session.setdefault(problem.session, []).append(problem)
        moved = 0
        for problems in by_session.values():
            moved += await _set_aside(storage, problems)
        click.echo(f"{counted(moved, 'record')} set aside", err=True)
        _report(left, encrypted, as_json=as_json)
        if left:
            raise Ending(FOUND)

    with_store(store, work)


async def _set_aside(storage: Storage, problems: list[Problem]) -> int:
    session = await session_named(storage, problems[0].session)
    seqs = [problem.seq for problem in problems if problem.seq is not None]
    return await storage.set_aside(session.identity, seqs, "unreadable when repaired")


async def _problems(storage: Storage, encrypted: Encrypted) -> AsyncIterator[Problem]:
    from dragoman.errors import Corrupt, NotFound
    from dragoman.history.paths import stretches
    from dragoman.history.records import is_sealed, message_of
    from dragoman.history.transfer import every_row, every_session

    for text in await storage.verify():
        yield Problem("", None, text)
    async for session in every_session(storage):
        digest = session.identity.digest
        for fork in session.forks:
            try:
                stretches(session, fork.number)
            except NotFound:
                yield Problem(digest, None, f"branch {fork.number} leads nowhere")
        async for row in every_row(storage, session):
            if is_sealed(row.body):
                encrypted.count += 1
                continue
            try:
                message_of(row.body)
            except Corrupt as error:
                yield Problem(digest, row.seq, str(error))


def _report(problems: list[Problem], encrypted: Encrypted, *, as_json: bool | None) -> None:
    if encrypted.count:
        what = counted(encrypted.count, "record")
        complain(f"{what} can't be looked into: encrypted, and the commands have no keys")
    if wants_json(as_json):
        print_json([problem._asdict() for problem in problems])
        return
    if not problems:
        click.echo("nothing is wrong", err=True)
        return
    from dragoman.cli.screen import print_table

    rows = [(each.session[:12], str(each.seq or ""), each.problem) for each in problems]
    print_table(("session", "message", "problem"), rows)
