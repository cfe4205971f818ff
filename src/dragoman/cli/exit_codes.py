"""Exit codes, and one-line error messages instead of tracebacks."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Never

import click

if TYPE_CHECKING:  # loaded on errors only: `dragoman --help` doesn't need it
    from asyncio import AbstractEventLoop

    from dragoman.errors import DragomanError

OK = 0
FOUND = 1
USAGE = 2
BROKEN = 3
FILES = 4
PROVIDER = 5
FAULT = 70
INTERRUPTED = 128 + 2
TERMINATED = 128 + 15
HUNG_UP = 128 + 1
CLOSED = 128 + 13

_ENDINGS: dict[int, tuple[int, str]] = {signal.SIGTERM: (TERMINATED, "terminated")}
"""The signals that end a command, with its exit code and message."""
if sys.platform != "win32":
    _ENDINGS[signal.SIGHUP] = (HUNG_UP, "the terminal was closed")

EXIT_CODES = """\b
Exit codes:
  0   success
  1   problems were found, or losses with --strict
  2   wrong usage, or a missing key
  3   invalid document
  4   file can't be read or written
  5   provider error, or provider unreachable
  70  internal error (a bug in dragoman)
  129, 130, 141, 143  terminal closed, interrupted, output closed, terminated"""


INPUT = click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True)
"""An input argument: a file, or `-` for standard input."""
jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1, 61),  # the maximum on Windows
    default=1,
    show_default=True,
    metavar="N",
    help="Number of worker processes.",
)
"""Of the commands that work on many documents."""


_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
"""The errors of a full disk, or of a file that has become too large."""


class Ending(BaseException):
    """Ends the command with an exit code and optionally a message.

    A `BaseException`, so that `except Exception` doesn't catch it.
    """

    def __init__(self, code: int, message: str | None = None) -> None:
        super().__init__(message or "")
        self.code = code
        self.message = message


class _Termination(Ending, SystemExit):  # type: ignore[misc]  # both have `code`, a number here
    """An ending that event loops let pass, as they do `SystemExit`."""


def complain(message: str) -> None:
    """Print a message on standard error."""
    from dragoman.cli.screen import harmless
    from dragoman.cli.wrapping import say

    say(f"dragoman: {harmless(message)}", err=True)


def fault(error: BaseException) -> str:
    """The message for an unexpected error: its type and location, never its text."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"internal error ({type(error).__name__}{place}): this is a bug, please report it"


@contextmanager
def clean_ending() -> Generator[None, None, None]:
    """Turn exceptions into exit codes and messages, without a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # if it can't encode what we print
    with _terminable():
        try:
            yield
        except (Exception, KeyboardInterrupt, Ending) as error:  # noqa: BLE001 - named or unforeseen
            code, message = _ending_of(error)
            if isinstance(error, BrokenPipeError) or _is_full_output(error):
                _silence()
        else:
            return
    if message is not None:
        complain(message)
    sys.exit(code)


def _ending_of(error: BaseException) -> tuple[int, str | None]:
    """The exit code and message for an exception."""
    from dragoman.errors import DragomanError

    match error:
        case Ending():
            return error.code, error.message
        case DragomanError():
            return _code_of(error), str(error)
        case KeyboardInterrupt():
            return INTERRUPTED, "interrupted"
        case BrokenPipeError():
            return CLOSED, None
        case OSError():
            named = error.filename if isinstance(error.filename, str) else None
            if _is_full_output(error):
                named = "standard output"
            return FILES, ": ".join(filter(None, (named, error.strerror or type(error).__name__)))
        case _:
            return FAULT, fault(error)


def _is_full_output(error: BaseException) -> bool:
    """Whether standard output is on a full disk: whoever writes a file names it (`AtomicFile`)."""
    return isinstance(error, OSError) and error.errno in _FULL and error.filename is None


def _code_of(error: DragomanError) -> int:
    from dragoman.errors import AllFailed, ConfigError, ProviderError, TransportError

    match error:
        case ConfigError():
            return USAGE
        case ProviderError() | TransportError() | AllFailed():
            return PROVIDER
        case _:
            return BROKEN


@contextmanager
def _terminable() -> Generator[None, None, None]:
    """Make SIGTERM and SIGHUP unwind the stack as an interrupt does, so that cleanup runs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.getsignal(each) for each in _ENDINGS}
    before = {each: was for each, was in before.items() if was not in {signal.SIG_IGN, None}}
    for each in before:  # what is ignored stays so, as under nohup
        signal.signal(each, _ended)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _ended(number: int, _frame: FrameType | None) -> None:
    """Handle a signal; a running event loop ends between two callbacks, never inside one."""
    if number != signal.SIGTERM:
        from dragoman.gateway.hangup import forget_terminal

        forget_terminal()
    leave = partial(_leave, *_ENDINGS[number])
    loop = _running_loop()
    if loop is None:
        leave()
    else:
        loop.call_soon_threadsafe(leave)


def _leave(code: int, message: str) -> Never:
    raise _Termination(code, message)


def _running_loop() -> AbstractEventLoop | None:
    if "asyncio.events" not in sys.modules:
        return None
    from asyncio import get_running_loop

    try:
        return get_running_loop()
    except RuntimeError:
        return None


def _silence() -> None:
    """Discard buffered output that nobody can take, so that flushing at exit can't fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):  # a stand-in in a test
        pass
    finally:
        os.close(nowhere)
