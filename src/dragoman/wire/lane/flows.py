"""Runs of deltas, written: the bytes around a text are made once, and put around each piece.

After a delta was written in the general way, an encoder may say how the next ones of the same part
are written, if they are nothing but more text: its flow. An encoder around another one takes over
the flow of that one, with the lists in which it keeps the texts itself. So a run passes through all
of them with one check for each delta.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard

import msgspec

from dragoman.model.events import Event, PartDelta
from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import dumps
from dragoman.model.tools import ToolCallDelta
from dragoman.wire.lane import switch

Delta = PartDelta | ToolCallDelta
Encode = Callable[[str], bytes]
encode_text: Encode = msgspec.json.Encoder().encode
"""A text as JSON; raises for half a character, which the general way can write."""
MARK = "\x00the text\x00"
"""What stands for a text in a frame that is made to find out what is around it."""
_WRITTEN_MARK = dumps(MARK)


class Flow:
    """How the next pieces of a part are written, which are only more of its text."""

    __slots__ = ("choice", "encode", "index", "kept", "kind")

    def __init__(self, like: Delta, encode: Encode, *kept: list[str]) -> None:
        self.kind = type(like)
        self.index = like.index
        self.choice = like.choice
        self.encode = encode
        """The bytes to send for a piece; raises what msgspec does, and has done nothing then."""
        self.kept = kept
        """Where the pieces are kept."""

    def beside(self, *kept: list[str]) -> Flow:
        """The same, for an encoder that keeps the pieces as well."""
        made = Flow.__new__(Flow)
        made.kind, made.index, made.choice = self.kind, self.index, self.choice
        made.encode, made.kept = self.encode, (*self.kept, *kept)
        return made

    def is_for(self, event: Delta) -> bool:
        """Whether an event is about the same part."""
        is_like = type(event) is self.kind and event.index == self.index
        return is_like and event.choice == self.choice


class FlowingEncoder:
    """An encoder that writes runs of plain deltas in a shorter way; `_feed` is the general one."""

    _run: tuple[Any, ...] | None = None  # the part of the event before, if that was a delta
    flow: Flow | None = None
    """How the next plain delta of the part that grew last is written; None: in the general way."""

    def feed(self, event: Event) -> bytes:
        """The bytes to send for an event; none, where more has to come first."""
        flow = self.flow
        if flow is not None:
            text = None
            if type(event) is PartDelta:  # as `is_for` and `is_plain` have it, without the calls
                if (
                    event.index == flow.index
                    and flow.kind is PartDelta
                    and event.choice == flow.choice
                    and event.extras is EMPTY
                    and event.signature is None
                    and event.data is None
                    and event.citations == ()
                ):
                    text = event.text
            elif type(event) is ToolCallDelta and flow.is_for(event):
                text = _plain_text(event)
            if text:
                try:
                    written = flow.encode(text)
                except UnicodeEncodeError:  # half a character
                    pass
                else:
                    for kept in flow.kept:
                        kept.append(text)
                    return written
            self.flow = None
        written = self._feed(event)
        if isinstance(event, (PartDelta, ToolCallDelta)):
            self._note_delta_of_run(event)
        else:
            self._run = None
        return written

    def _note_delta_of_run(self, event: Delta) -> None:
        """Look for the flow once a second plain delta has come: many parts are short."""
        run, self._run = self._run, (type(event), event.index, event.choice)
        if run == self._run and is_plain(event) and switch.is_on():
            self.flow = self._flow_after(event)

    def close(self) -> bytes:
        """The last bytes; those of an error, if the events ended early (G1)."""
        self.flow = None
        return self._close()

    def _feed(self, event: Event) -> bytes:
        """The bytes to send for an event, in the general way."""
        raise NotImplementedError

    def _close(self) -> bytes:
        """The last bytes."""
        raise NotImplementedError

    def _flow_after(self, event: Delta) -> Flow | None:  # noqa: ARG002 - derived ones need it
        """How the next one like it is written, now that this one was."""
        return None


def is_plain(event: Event) -> TypeGuard[Delta]:
    """Whether an event is only more of a text."""
    if type(event) is PartDelta:
        return bool(event.text) and event.extras is EMPTY and event.citations == () and (
            event.signature is None and event.data is None
        )  # fmt: skip
    return type(event) is ToolCallDelta and bool(_plain_text(event))


def _plain_text(event: ToolCallDelta) -> str | None:
    """The arguments in a piece of a call that has nothing else."""
    has_more = event.id or event.name or event.signature or event.extras is not EMPTY
    return None if has_more or event.kind != "function" else event.arguments_delta


def inner_flow(encoder: Any, event: Delta) -> Flow | None:
    """The flow of an encoder inside, if it is about the part of an event that it was just fed."""
    flow: Flow | None = getattr(encoder, "flow", None)
    return flow if flow is not None and flow.is_for(event) else None


def around(before: bytes, after: bytes) -> Encode:
    """What writes a text as JSON, between these bytes."""

    def encode(text: str) -> bytes:
        return before + encode_text(text) + after

    return encode


def around_mark(frame: bytes, count: int = 1) -> Encode | None:
    """The same, from a frame that has the mark where the text is to be, so many times."""
    before, *between = frame.rsplit(_WRITTEN_MARK, count)
    if len(between) != count:
        return None
    if count == 1:
        return around(before, between[0])

    def encode(text: str) -> bytes:
        return encode_text(text).join([before, *between])

    return encode


def nothing(_text: str) -> bytes:
    """What is sent of a part that is written once it is whole."""
    return b""
