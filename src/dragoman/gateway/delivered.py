"""Estimates what was delivered, where no provider says it, or what one says can't be.

A provider reports usage at the end of a response. Clients may hang up before it, and some servers
report nothing, or zero. What is charged then is the largest of the reservation, of what was
reported so far, and of this estimate: a token for every three bytes that went in or came out, and
at least one for every piece of a stream.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dragoman.errors import DragomanError
from dragoman.model.content import AnyPart
from dragoman.model.events import PartDelta, PartStart
from dragoman.model.parts import Refusal, Text, Thinking
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.model.usage import Usage
from dragoman.wire.dialect import Dialect
from dragoman.wire.whole_frames import MAX_HELD_BYTES

MIN_BYTES_PER_TOKEN = 3
"""Divides bytes to give an upper estimate of their tokens."""
MAX_BYTES_PER_TOKEN = 16
"""Divides bytes to give a lower estimate of their tokens, in whatever language."""
SLACK = 1024
"""Bytes of a body that may be no content."""
BLOCK = 64 * 1024
"""Bytes of a stream that are decoded at once, to tell content from what surrounds it."""
_SENT = (PartStart, PartDelta, ToolCallDelta)


def tokens_in(size: int) -> int:
    """Upper estimate of the tokens in some bytes of content."""
    return -(-size // MIN_BYTES_PER_TOKEN)


def tokens_in_body(body: bytes) -> int:
    """Upper estimate of the input tokens in a request: token ids may take two bytes each."""
    return max(tokens_in(len(body)), body.count(b",")) + 1


def content_size(response: Response) -> int:
    """The bytes of a response's texts, thinking and tool calls."""
    return sum([_size(part) for choice in response.choices for part in choice.message.parts])


def _size(part: AnyPart) -> int:
    if isinstance(part, (Text, Thinking, Refusal)):
        return _bytes_in(part.text)
    if isinstance(part, ToolCall):
        return _bytes_in(part.name) + _bytes_in(part.raw_arguments)
    return 0


def _bytes_in(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def reported_output(usage: Usage) -> int:
    """All output tokens of a report."""
    return usage.total_output + usage.separate_output


def is_credible(usage: Usage | None, size: int) -> bool:
    """Whether a report may be true of a complete answer with that many bytes of content."""
    if usage is None:
        return False
    output = reported_output(usage)
    return (output > 0 or not size) and output * MAX_BYTES_PER_TOKEN + SLACK >= size


def largest(usages: Iterable[Usage | None]) -> Usage:
    """The most input and the most output of several usages."""
    known = [each for each in usages if each is not None]
    inputs = [each.total_input + each.separate_input for each in known]
    outputs = [reported_output(each) for each in known]
    for each, sent, received in zip(known, inputs, outputs, strict=True):
        if sent == max(inputs) and received == max(outputs):
            return each  # with its details, such as what came from a cache
    return Usage(input=max(inputs, default=0), output=max(outputs, default=0))


class Measured(NamedTuple):
    """What a stream brought."""

    size: int
    """Bytes of content; `pieces`: how many frames had some."""
    pieces: int

    @property
    def tokens(self) -> int:
        """Upper estimate of its tokens: a frame seldom has less than one."""
        return max(self.pieces, tokens_in(self.size))


class StreamSize:
    """Measures what passes through in a stream.

    It is decoded in blocks, which costs far less than frame by frame; the last one only if its size
    is asked for.
    """

    __slots__ = ("_decoder", "_held", "_held_size", "_is_odd", "_pieces", "_silent", "_uncounted")

    def __init__(self, dialect: Dialect) -> None:
        self._decoder = dialect.stream_decoder()
        self._held: list[bytes] = []
        self._held_size = 0
        self._pieces = 0
        self._is_odd = False
        self._uncounted = 0
        """Bytes after what is no stream of the dialect."""
        self._silent = 0
        """Bytes since the last block that ended a frame."""

    def feed(self, piece: bytes) -> None:
        """Take the next bytes."""
        self._held.append(piece)
        self._held_size += len(piece)
        if self._held_size >= BLOCK:
            self._read()

    def _read(self) -> None:
        """Decode what is held."""
        block, size = b"".join(self._held), self._held_size
        self._held, self._held_size = [], 0
        if self._is_odd:
            self._uncounted += size
            return
        try:
            events = self._decoder.feed(block)
        except DragomanError:
            self._is_odd = True
            self._uncounted += self._silent + size
        else:
            self._pieces += sum([isinstance(event, _SENT) for event in events])
            self._silent = 0 if events else self._silent + size

    def measured(self) -> Measured:
        """What the stream brought so far."""
        self._read()
        # An incomplete frame is delivered only if it is very long.
        begun = self._silent if self._silent > MAX_HELD_BYTES and not self._is_odd else 0
        size = content_size(self._decoder.response) + self._uncounted + begun
        return Measured(size, self._pieces)
