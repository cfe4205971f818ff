"""`history export` and `import`: sessions as JSONL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dragoman.cli.atomic_files import Output, refuse_same
from dragoman.cli.exit_codes import BROKEN, INPUT, Ending, clean_ending
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
    from dragoman.history.transfer import OnConflict


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
@click.option("--from", "source", default="auto", show_default=True, metavar="FORMAT",
              help="Format of the files: a dialect, canonical, chatgpt, claude, sharegpt, or"
              " auto.")  # fmt: skip
@store_options
@click.option("--on-conflict", type=click.Choice(["fail", "skip", "replace"]), default="fail",
              show_default=True, help="What to do with sessions that already exist.")  # fmt: skip
@click.option("--agent", help="Agent of the new sessions. Default: the format, or import.")
@click.option("--user", help="User of the new sessions.")
@click.option("--group", help="Group of the new sessions.")
@click.option("--scope", help="Scope of the new sessions.")
def import_sessions(
    files: tuple[str, ...], source: str, store: Place, on_conflict: OnConflict, **names: str | None
) -> None:
    """Import sessions written by `export`, and conversations from other sources.

    A FILE holds what `dragoman convert` reads: requests, responses and arrays of messages of any
    dialect, one or many, and the conversations.json of ChatGPT and Claude. Each conversation
    becomes a session, named by its id or by file and number. - is standard input. What can't be
    read is reported, and the rest is imported.
    """

    async def work(storage: Storage) -> None:
        from dragoman.cli.history.importing import imported

        reports = [await imported(storage, each, on_conflict) for each in sources]
        if any(report.problems for report in reports):
            raise Ending(BROKEN)

    with clean_ending():
        from dragoman.cli.history.importing import sources_of

        sources = sources_of(files, source, names)
    with_store(store, work, makes=True)
