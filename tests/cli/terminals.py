"""A simulated user at a terminal: starts a command, types, and reads the screen."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from codecs import getincrementaldecoder
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

import pyte

from tests.environment import PATIENCE

CTRL_C, CTRL_D = "\x03", "\x04"


COLUMNS = 100
PASTED, END = "\x1b[200~", "\x1b[201~"
"""What a terminal sends around what is pasted."""


class Terminal:
    """A running command with a terminal for all its streams."""

    def __init__(
        self, process: subprocess.Popen[bytes], handle: int, rows: int, columns: int
    ) -> None:
        self.process = process
        self.handle = handle
        self._seen = ""
        self._read_to = 0
        self._decoder = getincrementaldecoder("utf-8")(errors="replace")
        self._screen = pyte.HistoryScreen(columns, rows, history=10_000)
        self._stream = pyte.Stream(self._screen)

    @property
    def shown(self) -> str:
        """The visible screen, without scrolled-off lines and trailing blanks."""
        columns = range(self._screen.columns)
        gone = ["".join(line[n].data for n in columns) for line in self._screen.history.top]
        return "\n".join(line.rstrip() for line in [*gone, *self._screen.display]).rstrip("\n")

    def until_shown(self, text: str, *, count: int = 1) -> None:
        """Wait until a text is on the screen at least `times` times."""
        self._wait_for(lambda: self.shown.count(text) >= count, text)

    def until_ready(self, before: str = "") -> None:
        """Wait until a text is shown and the chat is ready for input: its last line is empty."""
        self._wait_for(lambda: before in self.shown and self.shown.endswith("\n>"), before)

    def _wait_for(self, is_there: Callable[[], bool], text: str) -> None:
        deadline = monotonic() + PATIENCE
        while not is_there():
            if monotonic() > deadline or not self._read(deadline):
                msg = f"there is no {text!r} on\n{self.shown}"
                raise AssertionError(msg)

    def resize(self, columns: int, rows: int) -> None:
        """Resize the window."""
        fcntl.ioctl(self.handle, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._screen.resize(rows, columns)

    @property
    def raw(self) -> str:
        """Everything written to the terminal, with control sequences."""
        return self._seen

    def hang_up(self) -> None:
        """Close the window."""
        os.close(self.handle)
        self.handle = -1

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self.handle, text.encode())

    def say(self, text: str) -> None:
        """Type a line, wait until it is shown, and press Enter."""
        self.type(text)
        self._wait_for(lambda: self.shown.endswith(text.rstrip()), text)
        self.type("\r")

    def paste(self, text: str) -> None:
        """Bracketed paste: the line ends are carriage returns, as a terminal sends them."""
        self.type(f"{PASTED}{text.replace(chr(10), chr(13))}{END}")

    def until(self, text: str) -> str:
        """Wait for a text after the previous match; returns the output up to it."""
        wanted = text.rstrip(" ")
        self._wait_for(lambda: self.shown.find(wanted, self._read_to) >= 0, wanted)
        shown = self.shown
        start, self._read_to = self._read_to, shown.find(wanted, self._read_to) + len(wanted)
        return shown[start : self._read_to]

    def until_there(self, name: str) -> None:
        """Wait until the command has created a file."""
        deadline = monotonic() + PATIENCE
        while not Path(name).exists():
            assert monotonic() < deadline, f"there is no {name}"
            sleep(0.01)

    def ended(self) -> int:
        """Wait for the command to end; returns its exit code."""
        deadline = monotonic() + PATIENCE
        while self._read(deadline):
            pass
        return self.process.wait(PATIENCE)

    def _read(self, deadline: float) -> bool:
        """Read more output; False at the end."""
        ready, _, _ = select.select([self.handle], [], [], max(deadline - monotonic(), 0))
        piece = b""
        if ready:
            with suppress(OSError):  # Linux raises this when the other end is closed
                piece = os.read(self.handle, 65536)
        text = self._decoder.decode(piece)
        self._seen += text
        self._stream.feed(text)
        return bool(piece)


def _surroundings() -> dict[str, str]:
    """The environment without the size variables of another terminal: pytest-xdist sets them."""
    return {name: os.environ[name] for name in os.environ if name not in {"LINES", "COLUMNS"}}


@contextmanager
def terminal(
    command: Sequence[str], environment: Mapping[str, str] | None = None, *, rows: int = 40,
    columns: int = COLUMNS, folder: Path | None = None,
) -> Generator[Terminal]:  # fmt: skip
    """Run a command on a new terminal; it is ended with the block."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True,
        start_new_session=True, cwd=folder, preexec_fn=_take_over,  # noqa: PLW1509 - one call, no locks
        env={**_surroundings(), "TERM": "xterm", "PYTHONUTF8": "1", **(environment or {})},
    )  # fmt: skip
    os.close(theirs)
    screen = Terminal(process, ours, rows, columns)
    try:
        yield screen
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()
        if screen.handle >= 0:
            screen.hang_up()


def _take_over() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C reaches the command


def dragoman(*arguments: str) -> list[str]:
    """The arguments that run `dragoman`."""
    return [sys.executable, "-m", "dragoman", *arguments]
