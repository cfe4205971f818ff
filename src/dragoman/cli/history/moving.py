"""`history export` and `import`: sessions as lines of JSON."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from dragoman.cli.endings import BROKEN, INPUT, Ending, complain
from dragoman.cli.history.stores import (
    FIELDS,
    counted,
    filter_of,
    filter_options,
    session_named,
    store_option,
    with_store,
)

if TYPE_CHECKING:
    from dragoman.history.storage.protocol import Filter, Storage
    from dragoman.history.transfer import OnConflict


@click.command()
@click.argument("session", required=False)
@store_option
@filter_options
@click.option("-o", "--output", type=click.Path(dir_okay=False, writable=True, allow_dash=True),
              default="-", help="A file in place of standard output.")  # fmt: skip
def export(session: str | None, store: str | None, output: str, **names: str | None) -> None:
    """Write sessions as JSONL, each session before its messages: one SESSION, or all."""

    async def work(storage: Storage) -> None:
        from dragoman.history.storage.protocol import Filter

        which = filter_of(names)
        if session is not None:
            identity = (await session_named(storage, session)).identity
            which = Filter(**{field: getattr(identity, field) for field in FIELDS})
        with _opened(output) as out:
            written = await _write(storage, which, out)
        click.echo(f"{counted(written, 'line')} written", err=True)

    with_store(store, work)


async def _write(storage: Storage, which: Filter, out: BinaryIO) -> int:
    from dragoman.history.transfer import export as lines

    written = 0
    async for line in lines(storage, which):
        out.write(line + b"\n")
        written += 1
    out.flush()
    return written


@contextmanager
def _opened(output: str) -> Iterator[BinaryIO]:
    if output == "-":
        yield sys.stdout.buffer
        return
    with Path(output).open("wb") as file:
        yield file


@click.command("import")
@click.argument("files", nargs=-1, required=True, type=INPUT, metavar="FILE...")
@store_option
@click.option("--on-conflict", type=click.Choice(["fail", "skip", "replace"]), default="fail",
              show_default=True, help="Sessions that are there already.")  # fmt: skip
def import_sessions(files: tuple[str, ...], store: str | None, on_conflict: OnConflict) -> None:
    """Read sessions from JSONL that `export` wrote; - is standard input."""

    async def work(storage: Storage) -> None:
        from dragoman.cli.screen import progress
        from dragoman.history.transfer import import_lines

        broken = 0
        for name in files:
            with progress(_size(name)) as advance:
                report = await import_lines(storage, _lines(name, advance), on_conflict=on_conflict)
            for problem in report.problems:
                complain(f"{name}: {problem}")
            broken += len(report.problems)
            skipped = f", {report.skipped} were there already" if report.skipped else ""
            click.echo(
                f"{name}: {counted(report.sessions, 'session')},"
                f" {counted(report.messages, 'message')}{skipped}",
                err=True,
            )
        if broken:
            raise Ending(BROKEN)

    with_store(store, work)


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
