"""Imports files into a store: exports of our own, and conversations from other sources."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple

import click

from dragoman.cli.documents import opened, read_session, size_of_files
from dragoman.cli.exit_codes import BROKEN, Ending, complain
from dragoman.cli.history.stores import counted
from dragoman.cli.screen import progress
from dragoman.errors import Conflict, DragomanError, InvalidInputError
from dragoman.history.identity import SessionIdentity
from dragoman.history.session_summaries import TITLE
from dragoman.history.storage.protocol import Storage
from dragoman.history.transfer import ImportResult, OnConflict, import_lines, import_messages
from dragoman.providers.documents.batches import CHUNK, STDIN, batches, chunks_of
from dragoman.providers.documents.conversations import UNPACK, ZIP, messages_of
from dragoman.providers.documents.reading import AUTO, CANONICAL, Document, Reader
from dragoman.providers.documents.splitting import Piece
from dragoman.wire.losses import Loss

_MAX_REPORTED = 20  # problems reported individually
_MAX_TITLE = 200
_HEAD = 64 * 1024
_EXPORT = re.compile(
    rb'^\s*\{\s*"dragoman"\s*:\s*\d+\s*,\s*"kind"\s*:\s*"(?:Session|Record)"', re.MULTILINE
)


class Source(NamedTuple):
    """A file to import, and the names of its new sessions."""

    name: str
    reader: Reader
    stem: str
    """What sessions without an id are named after."""
    names: Mapping[str, str | None]
    takes_exports: bool
    """Whether it may be a file of `history export`."""


def sources_of(files: Sequence[str], source: str, names: Mapping[str, str | None]) -> list[Source]:
    """The files to import; raises if the format is unknown."""
    reader = Reader(source, read_session)
    stems = Counter(_stem(name) for name in files)
    return [
        Source(
            name,
            reader,
            _stem(name) if stems[_stem(name)] == 1 else Path(name).with_suffix("").as_posix(),
            names,
            source in (AUTO, CANONICAL),
        )
        for name in files
    ]


def _stem(name: str) -> str:
    return "stdin" if name == STDIN else Path(name).stem


async def imported(storage: Storage, source: Source, on_conflict: OnConflict) -> ImportResult:
    """Import a file and print a summary."""
    name = source.name
    with progress(size_of_files([name])) as advance, opened(name) as stream:
        head = stream.read(_HEAD)
        if head.startswith(ZIP):
            raise Ending(BROKEN, f"{name}: {UNPACK}")
        is_export = source.takes_exports and _EXPORT.search(head) is not None
        lost: Counter[str] = Counter()
        try:
            if is_export:
                lines = _lines(head, stream, advance)
                report = await import_lines(storage, lines, on_conflict=on_conflict)
            else:
                advance(len(head))
                chunks = chain([head] if head else [], chunks_of(stream, CHUNK, advance))
                documents = (
                    piece for batch in batches(chunks, name) for piece in batch.documents()
                )
                report = await _conversations(storage, source, documents, on_conflict, lost)
        except Conflict:
            msg = (
                f"{name}: a session already exists; those before it were imported. To continue,"
                " use --on-conflict skip or --on-conflict replace"
            )
            raise Ending(BROKEN, msg) from None
    _print(name, report, lost)
    return report


def _lines(head: bytes, stream: BinaryIO, advance: Callable[[int], None]) -> Iterator[bytes]:
    beginning = head + stream.readline()
    for line in chain(beginning.split(b"\n"), stream):
        advance(len(line) + (not line.endswith(b"\n")))
        yield line


# --- conversations


async def _conversations(
    storage: Storage,
    source: Source,
    documents: Iterator[Piece],
    on_conflict: OnConflict,
    lost: Counter[str],
) -> ImportResult:
    report = ImportResult()
    for number, piece in enumerate(documents, 1):
        try:
            if piece.problem is not None:
                raise InvalidInputError(piece.problem)
            document = source.reader.read(piece.raw)
            messages, losses = messages_of(document)
        except DragomanError as error:
            report.problems.append(f"line {piece.line}: {error}")
            continue
        chat = document.chat
        if chat is not None and chat.title and TITLE not in messages[0].metadata:
            messages[0] = messages[0].with_metadata(TITLE, chat.title[:_MAX_TITLE])
        branches = () if chat is None else chat.branches
        identity = _identity(source, document, number)
        if await import_messages(
            storage, identity, messages, branches=branches, on_conflict=on_conflict
        ):
            report.sessions += 1
            report.messages += len(messages) + sum(len(each.messages) for each in branches)
            lost.update(_reason(loss) for loss in losses if chat is None)
        else:
            report.skipped += 1
    return report


def _reason(loss: Loss) -> str:
    return f"{loss.path}: {loss.reason}"


def _identity(source: Source, document: Document, number: int) -> SessionIdentity:
    """The identity of a new session; the same when the file is imported again."""
    names = dict(source.names)
    chat = None if document.chat is None else document.chat.id
    otherwise = "import" if document.chat is None else document.chat.format
    agent = names.pop("agent", None) or otherwise
    return SessionIdentity(agent=agent, chat=chat or f"{source.stem}-{number}", **names)


# --- the report


def _print(name: str, report: ImportResult, lost: Counter[str]) -> None:
    for problem in report.problems[:_MAX_REPORTED]:
        complain(f"{name}: {problem}")
    if len(report.problems) > _MAX_REPORTED:
        complain(f"{name}: and {len(report.problems) - _MAX_REPORTED:,} more problems")
    if report.problems and not (report.sessions or report.skipped):
        complain(
            f"{name}: nothing was imported; it must be a file from `dragoman history export`, or"
            " conversations in JSON"
        )
    for reason, count in lost.most_common(_MAX_REPORTED):
        complain(f"{name}: {reason} ({counted(count, 'conversation')})")
    skipped = f", {report.skipped:,} skipped (already there)" if report.skipped else ""
    click.echo(
        f"{name}: {counted(report.sessions, 'session')},"
        f" {counted(report.messages, 'message')}{skipped}",
        err=True,
    )
