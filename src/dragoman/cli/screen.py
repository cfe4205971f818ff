"""Terminal output: tables, progress bars, and invisible characters made visible."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from dragoman.model.invisible import VisibleStream

_LAST_PICTURED, _DELETE, _LAST_SHORT = 0x1F, 0x7F, 0xFFFF
_BAR_DELAY = 1.0  # seconds; shorter work needs no bar
_STEPS_PER_UPDATE = 16  # steps between two updates of the bar


def harmless(text: str) -> str:
    r"""The text with control and other invisible characters replaced by visible ones.

    >>> harmless("\x1b[31mred")
    '␛[31mred'
    """
    from dragoman.model.invisible import made_visible

    return made_visible(text.replace("\r\n", "\n"), _picture)


def harmless_stream() -> VisibleStream:
    """Does the same for a text that comes in pieces."""
    from dragoman.model.invisible import VisibleStream

    return VisibleStream(_picture)


def _picture(char: str) -> str:
    code = ord(char)
    if code <= _LAST_PICTURED:
        return chr(0x2400 + code)
    if code == _DELETE:
        return "\u2421"
    return f"\\u{code:04x}" if code <= _LAST_SHORT else f"\\U{code:08x}"


def harmless_line(text: str) -> str:
    """As `harmless`, on one line."""
    return harmless(text).replace("\n", "\u240a").replace("\t", "\u2409")


def clipped(text: str, length: int = 100) -> str:
    """The text, truncated with an ellipsis."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def print_table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], stream: TextIO | None = None
) -> None:
    """Print a table to standard output, or to another stream."""
    stream = stream or _stdout()
    clean = [[harmless_line(cell) for cell in row] for row in rows]
    if stream.isatty():
        _print_rich(headers, clean, stream)
        return
    lines = [list(headers), *clean]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        print("  ".join(cells).rstrip(), file=stream)
    stream.flush()  # before messages about it on another stream


def _stdout() -> TextIO:
    return sys.stdout


def _print_rich(headers: Sequence[str], rows: Sequence[Sequence[str]], stream: TextIO) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for header in headers:
        table.add_column(header, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    Console(file=stream).print(table)


_STYLES = {"error": "red", "warning": "yellow", "loss": "yellow", "note": "cyan"}


@contextmanager
def progress(
    total: int | None, *, seen: bool = False
) -> Generator[Callable[[int], None], None, None]:
    """Show a progress bar of bytes read on standard error, if that is a terminal.

    No bar if the output is `seen` on the terminal: the two would interfere.
    """
    if seen or not sys.stderr.isatty():
        yield lambda _count: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as bar:
        task = bar.add_task("", total=total)
        yield lambda count: bar.advance(task, count)


@contextmanager
def counting(total: int, what: str, *, seen: bool = False) -> Generator[Callable[[], None]]:
    """Show a progress bar with the time left on standard error, if that is a terminal.

    It appears after a second. No bar if the output is `seen` on the terminal.
    """
    if seen or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(what), TimeLeft())
    console = Console(stderr=True)
    bar = Progress(*columns, console=console, transient=True, redirect_stdout=False)
    task = bar.add_task("", total=total)
    begun = monotonic()
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        if not bar.live.is_started and monotonic() - begun > _BAR_DELAY:
            bar.start()
        if done % _STEPS_PER_UPDATE == 0 or done == total:
            bar.update(task, completed=done)

    try:
        yield advance
    finally:
        if bar.live.is_started:
            bar.stop()


def size_of(count: int) -> str:
    """A number of bytes for display.

    >>> size_of(12_345)
    '12.3 kB'
    """
    if count < 1000:  # noqa: PLR2004 - of a kB
        return f"{count} bytes"
    for unit in ("kB", "MB"):
        count_in_unit = count / (1e3 if unit == "kB" else 1e6)
        if count_in_unit < 1000:  # noqa: PLR2004 - of the next unit
            return f"{count_in_unit:.1f} {unit}"
    return f"{count / 1e9:.1f} GB"
