"""SIGHUP: the terminal was closed. A process without a terminal takes it as a request to reload."""

from __future__ import annotations

import os
import signal
import stat
from contextlib import suppress

HANGUP: signal.Signals | None = getattr(signal, "SIGHUP", None)  # Windows has none
_OUTPUTS = (1, 2)


def ends_with_terminal() -> bool:
    """Whether this process has to end when it gets SIGHUP, because it runs on a terminal.

    A service has no terminal, and under `nohup` the signal is ignored when a program starts.
    """
    if HANGUP is None or signal.getsignal(HANGUP) is signal.SIG_IGN:
        return False
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def forget_terminal() -> None:
    """Discard output from now on: every write to a terminal that was closed fails."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for output in _OUTPUTS:
        with suppress(OSError):  # it is closed
            # Not `isatty`, which is false for a closed terminal.
            if stat.S_ISCHR(os.fstat(output).st_mode):
                os.dup2(nowhere, output)
    os.close(nowhere)
