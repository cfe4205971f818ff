"""Whether a terminal shows what is typed: not while an answer is drawn."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress


def silenced() -> Callable[[], None]:
    """Have the terminal keep what is typed to itself; returns what undoes that.

    What is typed ahead would land in the middle of what is drawn. It is not lost: the next line
    that is read has it, key by key, since no line of it is longer than the terminal can hold.
    Ctrl-C goes on working, and throws away nothing that is on its way to a slow screen: what is
    drawn next counts on it.
    """
    try:
        import termios
    except ImportError:  # Windows
        return lambda: None
    try:
        handle = sys.stdin.fileno()
        before = termios.tcgetattr(handle)
    except (OSError, ValueError, termios.error):  # it is no terminal
        return lambda: None
    quiet = [*before]
    quiet[0] &= ~termios.ICRNL  # its input modes: Enter stays what the editor takes for it
    quiet[3] = quiet[3] & ~(termios.ECHO | termios.ICANON) | termios.NOFLSH  # its local modes
    with suppress(termios.error):
        termios.tcsetattr(handle, termios.TCSANOW, quiet)

    def undo() -> None:
        with suppress(termios.error):  # the terminal may be gone
            termios.tcsetattr(handle, termios.TCSANOW, before)

    return undo
