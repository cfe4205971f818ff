"""A sign that something is going on, where somebody can see it."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import Timer


@contextmanager
def waiting(text: str, *, after: float = 0.0) -> Generator[None, None, None]:
    """Shows the text on standard error while the block runs, if that is a terminal.

    With `after`, only where that takes so many seconds: what is mostly quick would only flicker.
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
