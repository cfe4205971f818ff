"""`history export` and `import`: sessions as JSONL."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dragoman.cli.atomic_files import Output, refuse_same
from dragoman.cli.exit_codes import BROKEN, INPUT, Ending, complain
from dragoman.cli.history.naming import session_meant
from dragoman.cli.history.stores import (
    FIELDS,
    Place,
    counted,
    file_of,
    filter_of,
    filter_options,
    lines_in,
    store_options,
    with_store,
)

if TYPE_CHECKING:
    from dragoman.history.storage.protocol import Filter, Storage
    from dragoman.history.transfer import Imported, OnConflict

_MAX_REPORTED = 20  # problems reported individually


@click.command()
@click.argument("session", required=False)
@store_options
@filter_options
@click.option("--out", "output", default="-", metavar="FILE",
              type=click.Path(dir_okay=False, writable=True, allow_dash=True),
              help="Write to this file instead of standard output.")  # fmt: skip
def export(session: str | None, store: Place, output: str, **names: str | None) -> None:
    """Export sessions as JSONL: one, some or all.

    Each session precedes its messages. The file is created when it is complete. Encrypted sessions
    stay encrypted unless keys are given; with keys they are written in plain text.
    """

    async def work(storage: Storage) -> None:
        which = await _chosen(storage, session, names)
        file, place = None if output == "-" else output, file_of(store.url)
        refuse_same([] if place is None else [str(place)], [file])
        with Output(file) as out:
            written = await _write(storage, which, out)
            out.keep()
        click.echo(f"{counted(written, 'line')} written{_in_plain(storage)}", err=True)

    with_store(store, work)


def _in_plain(storage: Storage) -> str:
    from dragoman.cli.history.keyed import KeyedStorage

    return ", not encrypted" if isinstance(storage, KeyedStorage) else ""


async def _chosen(storage: Storage, session: str | None, names: dict[str, str | None]) -> Filter:
    from dragoman.history.storage.protocol import Filter

    if session is None:
        return filter_of(names)
    identity = (await session_meant(storage, session, names)).identity
    return Filter(**{field: getattr(identity, field) for field in FIELDS})


async def _write(storage: Storage, which: Filter, out: Output) -> int:
    from dragoman.cli.screen import counting
    from dragoman.history.transfer import export as lines

    written = 0
    total = await lines_in(storage, which)
    with counting(total, "lines", seen=out.is_seen) as advance:
        async for line in lines(storage, which):
            out.write(line + b"\n")
            written += 1
            advance()
    return written


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=INPUT, metavar="FILE...")
@store_options
@click.option("--on-conflict", type=click.Choice(["fail", "skip", "replace"]), default="fail",
              show_default=True, help="What to do with sessions that already exist.")  # fmt: skip
def import_sessions(files: tuple[str, ...], store: Place, on_conflict: OnConflict) -> None:
    """Import sessions written by `export`; - is standard input.

    Lines that can't be read are reported, and the rest is imported.
    """

    async def work(storage: Storage) -> None:
        reports = [await _imported(storage, name, on_conflict) for name in files]
        if any(report.problems for report in reports):
            raise Ending(BROKEN)

    with_store(store, work, makes=True)


async def _imported(storage: Storage, name: str, on_conflict: OnConflict) -> Imported:
    from dragoman.cli.screen import progress
    from dragoman.errors import Conflict
    from dragoman.history.transfer import import_lines

    with progress(_size(name)) as advance:
        try:
            report = await import_lines(storage, _lines(name, advance), on_conflict=on_conflict)
        except Conflict:
            msg = (
                f"{name}: a session already exists; those before it were imported. To continue,"
                " use --on-conflict skip or --on-conflict replace"
            )
            raise Ending(BROKEN, msg) from None
    _report(name, report)
    return report


def _report(name: str, report: Imported) -> None:
    for problem in report.problems[:_MAX_REPORTED]:
        complain(f"{name}: {problem}")
    if len(report.problems) > _MAX_REPORTED:
        complain(f"{name}: and {len(report.problems) - _MAX_REPORTED:,} more problems")
    if report.problems and not (report.sessions or report.skipped):
        complain(f"{name}: nothing was imported; is it a file from `dragoman history export`?")
    skipped = f", {report.skipped:,} skipped (already there)" if report.skipped else ""
    click.echo(
        f"{name}: {counted(report.sessions, 'session')},"
        f" {counted(report.messages, 'message')}{skipped}",
        err=True,
    )


def _size(name: str) -> int | None:
    return None if name == "-" else Path(name).stat().st_size


def _lines(name: str, advance: Callable[[int], None]) -> Iterator[bytes]:
    if name == "-":
        yield from sys.stdin.buffer
        return
    with Path(name).open("rb") as lines:
        for line in lines:
            advance(len(line))
            yield line
