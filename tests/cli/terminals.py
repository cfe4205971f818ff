"""A person at a terminal: starts a command, types, and reads what is on the screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from codecs import getincrementaldecoder
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

from tests.environment import PATIENCE

_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x07|\x01|\x02")

CTRL_C, CTRL_D = "\x03", "\x04"


class Terminal:
    """A running command that has a terminal for all its streams."""

    def __init__(self, process: subprocess.Popen[bytes], handle: int) -> None:
        self.process = process
        self._handle = handle
        self._seen = ""
        self._read_to = 0
        self._decoder = getincrementaldecoder("utf-8")(errors="replace")

    @property
    def seen(self) -> str:
        """All that was written, without what moves the cursor and sets colours.

        A line that was erased and written again is two.
        """
        return _SEQUENCE.sub("", self._seen.replace("\x1b[2K", "\n")).replace("\r", "")

    @property
    def raw(self) -> str:
        """All that was written, as it was."""
        return self._seen

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._handle, text.encode())

    def interrupt(self) -> None:
        """Press ctrl-C once the command waits for a key.

        Python's `input` misses an interrupt between the prompt and the wait, until the next key.
        """
        state = Path(f"/proc/{self.process.pid}/stat")
        while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "S":
            sleep(0.01)
        self.type(CTRL_C)

    def until(self, text: str) -> str:
        """Wait until a text is there, beyond what was waited for before; returns what came."""
        deadline = monotonic() + PATIENCE
        while (place := self.seen.find(text, self._read_to)) < 0:
            if monotonic() > deadline or not self._read(deadline):
                msg = f"there is no {text!r} after\n{self.seen[self._read_to :]}"
                raise AssertionError(msg)
        start, self._read_to = self._read_to, place + len(text)
        return self.seen[start : self._read_to]

    def until_there(self, name: str) -> None:
        """Wait until the command has made a file."""
        deadline = monotonic() + PATIENCE
        while not Path(name).exists():
            assert monotonic() < deadline, f"there is no {name}"
            sleep(0.01)

    def ended(self) -> int:
        """The exit code, once the command has ended."""
        deadline = monotonic() + PATIENCE
        while self._read(deadline):
            pass
        return self.process.wait(PATIENCE)

    def _read(self, deadline: float) -> bool:
        """Read more; False where there is no more."""
        ready, _, _ = select.select([self._handle], [], [], max(deadline - monotonic(), 0))
        piece = b""
        if ready:
            with suppress(OSError):  # Linux says so when the other end is closed
                piece = os.read(self._handle, 65536)
        self._seen += self._decoder.decode(piece)
        return bool(piece)


def _surroundings() -> dict[str, str]:
    """The environment, without the size of some other terminal: pytest-xdist makes one up."""
    return {name: os.environ[name] for name in os.environ if name not in {"LINES", "COLUMNS"}}


@contextmanager
def terminal(
    command: Sequence[str], environment: Mapping[str, str] | None = None, *, rows: int = 40
) -> Generator[Terminal]:
    """The command on a terminal of its own, ended when the block is."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 100, 0, 0))
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True,
        start_new_session=True, preexec_fn=_take_over,  # noqa: PLW1509 - one call, no locks
        env={**_surroundings(), "TERM": "xterm", "PYTHONUTF8": "1", **(environment or {})},
    )  # fmt: skip
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()
        os.close(ours)


def _take_over() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that ctrl-C reaches the command


def dragoman(*arguments: str) -> list[str]:
    """The command."""
    return [sys.executable, "-m", "dragoman", *arguments]
