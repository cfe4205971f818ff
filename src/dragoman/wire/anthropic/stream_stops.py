"""Streams whose text stops last, for Claude Code.

Claude Code takes every block for a message when it stops, and `claude -p` prints the last one. The
state of a text may arrive after it (Gemini's signatures do), in a block of its own. That block is
started and stopped while the text is still open: the answer is then the text, and Claude Code sends
the state back before it. Other clients number blocks by their start and expect one at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.model.events import Event
from dragoman.model.jsontext import loads
from dragoman.wire.envelope import PREFIX
from dragoman.wire.lane.flows import Delta, Flow, FlowingEncoder, general_path, inner_flow
from dragoman.wire.losses import Loss, Repair
from dragoman.wire.streams import StreamEncoder

_START, _STOP, _END = "content_block_start", "content_block_stop", "message_delta"
_EITHER = b"event: content_block_st"
_FRAME_END = b"\n\n"


class TextStopsLast(FlowingEncoder):
    """Delays the stop of the last text until after the blocks with state that follow it."""

    def __init__(self, encoder: StreamEncoder) -> None:
        self._encoder = encoder
        self._write = general_path(encoder)
        self._text: int | None = None  # index of the latest text block
        self._stop = b""  # the delayed stop
        self._carriers: list[bytes] = []  # the frames of blocks with state since then

    @property
    def losses(self) -> Sequence[Loss]:
        """What could not be expressed so far."""
        return self._encoder.losses

    @property
    def repairs(self) -> Sequence[Repair]:
        """What was repaired so far."""
        return self._encoder.repairs

    def write(self, event: Event) -> bytes:
        """The bytes to send for an event, in the general way."""
        return self._ordered(self._write(event))

    def flow_after(self, event: Delta) -> Flow | None:
        """How to write deltas like the plain one that was just written."""
        return inner_flow(self._encoder, event)

    def _close(self) -> bytes:
        return self._ordered(self._encoder.close()) + self._released()

    def _ordered(self, written: bytes) -> bytes:
        if not written or not (self._stop or _EITHER in written):
            return written
        frames = written.split(_FRAME_END)[:-1]
        return b"".join([self._frame(frame + _FRAME_END) for frame in frames])

    def _frame(self, frame: bytes) -> bytes:
        """The bytes to send for a frame, now that it is known what follows the text."""
        head, _, data = frame.partition(b"\ndata: ")
        name = head.removeprefix(b"event: ").decode()
        event: Any = loads(data) if name in (_START, _STOP) else {}
        is_carrier = name == _START and _is_carrier(event["content_block"])
        if self._stop and (is_carrier or (name == _STOP and event["index"] != self._text)):
            self._carriers.append(frame)
            return b""
        if name == _STOP and event["index"] == self._text:
            self._stop = frame
            return b""
        if name == _START and event["content_block"]["type"] == "text":
            self._text = event["index"]
        return self._released(is_last=name == _END) + frame

    def _released(self, *, is_last: bool = False) -> bytes:
        """The delayed stop and the frames since then; in their own order unless it is the last."""
        stop, self._stop = self._stop, b""
        carriers, self._carriers = b"".join(self._carriers), []
        return carriers + stop if is_last else stop + carriers


def _is_carrier(block: dict[str, Any]) -> bool:
    """Whether a block has nothing but state that a front sealed."""
    data = block.get("data")
    is_hidden = block.get("type") == "redacted_thinking" and isinstance(data, str)
    return is_hidden and str(data).startswith(PREFIX)
