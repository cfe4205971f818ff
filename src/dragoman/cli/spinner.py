"""A spinner on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import Timer


@contextmanager
def waiting(text: str, *, after: float = 0.0) -> Generator[None, None, None]:
    """Show a spinner with the text on standard error while the block runs, on a terminal.

    With `after`, only after that many seconds, so that quick work doesn't flicker.
    """
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    status = Console(stderr=True).status(text)
    if not after:
        with status:
            yield
        return
    timer = Timer(after, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # it may be showing it just now
        status.stop()
