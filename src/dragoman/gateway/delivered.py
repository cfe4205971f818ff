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
from dragoman.model.events import PartDelta
from dragoman.model.parts import Refusal, Text, Thinking
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.model.usage import Usage
from dragoman.wire.dialect import Dialect

MIN_BYTES_PER_TOKEN = 3
"""Divides bytes to give an upper estimate of their tokens."""
MAX_BYTES_PER_TOKEN = 16
"""Divides bytes to give a lower estimate of their tokens, in whatever language."""
SLACK = 1024
"""Bytes of a body that may be no content."""
SAMPLE = 64 * 1024
"""Bytes at the beginning of a stream that are kept, to tell content from what surrounds it."""
_SENT = (PartDelta, ToolCallDelta)


def tokens_in(size: int) -> int:
    """Upper estimate of the tokens in some bytes of content."""
    return -(-size // MIN_BYTES_PER_TOKEN)


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
    """Counts what passes through in a stream, without reading it."""

    __slots__ = ("_dialect", "_mark", "_marks", "_more", "_more_frames", "_room", "_sample")

    def __init__(self, dialect: Dialect, marks: tuple[bytes, ...]) -> None:
        """`marks` may end the frames of such a stream."""
        self._dialect = dialect
        self._marks = marks
        self._mark: bytes | None = None
        self._sample: list[bytes] = []
        self._room = SAMPLE
        self._more = self._more_frames = 0

    def feed(self, piece: bytes) -> None:
        """Count bytes; the first ones are kept."""
        room = self._room
        if room > 0:
            self._room = room - len(piece)
            self._sample.append(piece if self._room >= 0 else piece[:room])
            if self._room >= 0:
                return
            piece = piece[room:]
        self._more += len(piece)
        self._more_frames += piece.count(self._mark or self._known_mark())

    def _known_mark(self) -> bytes:
        """What ends each frame of this stream."""
        begun = b"".join(self._sample)
        self._mark = next((mark for mark in self._marks if mark in begun), self._marks[0])
        return self._mark

    def measured(self) -> Measured:
        """What the stream brought.

        The sample is decoded. In the rest, frames are taken to have as much around their content
        as those of the sample had.
        """
        mark, begun = self._known_mark(), b"".join(self._sample)
        decoder = self._dialect.stream_decoder()
        place = pieces = around = 0
        while (end := begun.find(mark, place) + len(mark)) >= place + len(mark):
            try:
                events = decoder.feed(begun[place:end])
            except DragomanError:  # not of this dialect: the rest counts as it is
                break
            sent = sum([isinstance(event, _SENT) for event in events])
            pieces += sent
            around += (end - place) * bool(sent)
            place = end
        content = content_size(decoder.response)
        overhead = max(0, around - content) // pieces if pieces else 0
        is_cut = place < len(begun)
        rest = len(begun) - place + self._more - (self._more_frames + is_cut) * overhead
        return Measured(content + max(0, rest), pieces + self._more_frames)
