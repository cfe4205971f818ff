"""A text encoding that decodes whole lines only, and ends the connection at one that never ends.

The SDK's reader of a process's output collects a line piece by piece, copying all of it for each
piece, up to any size. It decodes with the encoding that it is given: with this one, it gets whole
lines, in time proportional to their length.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

ENCODING = "dragoman_utf8_lines"
MAX_LINE_BYTES = 64 * 1024 * 1024
"""Maximum size of a message from a process: twice what an agent accepts as a result."""
_overflow: ContextVar[Callable[[], None] | None] = ContextVar("dragoman_mcp_line", default=None)


@contextmanager
def ending(end: Callable[[], None]) -> Generator[None]:
    """Readers that start in the block call this when a line is too long.

    The SDK alone would go on to read, and drop, whatever the process writes.
    """
    token = _overflow.set(end)
    try:
        yield
    finally:
        _overflow.reset(token)


class _Lines(codecs.IncrementalDecoder):
    """Holds back an incomplete line."""

    def __init__(self, errors: str = "strict") -> None:
        super().__init__(errors)
        self._end = _overflow.get()
        self.reset()

    def decode(self, input: Any, final: bool = False) -> str:  # noqa: A002, FBT001, FBT002 - its signature
        """The lines that this completes; at the end, the rest."""
        lines, newline, rest = bytes(input).rpartition(b"\n")
        if final:
            lines, newline, rest = bytes(input), b"", b""
        text = ""
        if newline or final:
            held = b"".join(self._held)
            self.reset()
            text = codecs.decode(held + lines + newline, "utf-8", self.errors)
        self._held.append(rest)
        self._size += len(rest)
        if self._size > MAX_LINE_BYTES:
            self.reset()
            if self._end is not None:
                self._end()
            msg = f"a message has more than {MAX_LINE_BYTES:,} bytes"
            raise ConnectionError(msg)  # which the SDK's reader expects
        return text

    def reset(self) -> None:
        """Forget what is held back."""
        self._held: list[bytes] = []
        self._size = 0


def _found(name: str) -> codecs.CodecInfo | None:
    if name != ENCODING:
        return None
    utf8 = codecs.lookup("utf-8")
    return codecs.CodecInfo(
        name=ENCODING, encode=utf8.encode, decode=utf8.decode, incrementaldecoder=_Lines
    )


codecs.register(_found)
