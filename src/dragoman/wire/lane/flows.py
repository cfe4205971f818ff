"""Writes runs of deltas: the bytes around a text are made once and reused for each chunk.

After a delta was written in the general way, an encoder may return a flow: how to write the next
deltas of the same part, if they only add text. A wrapping encoder takes over the flow of the inner
one, with the lists in which it collects the texts itself. So a run passes through all encoders with
one check per delta: only the outermost encoder is fed, the others just `write`. The deltas of one
network read are written at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeGuard

import msgspec

from dragoman.model.events import Event, PartDelta
from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import dumps
from dragoman.model.tools import ToolCallDelta
from dragoman.wire.lane import switch
from dragoman.wire.lane.runs import EventList
from dragoman.wire.streams import StreamEncoder

Delta = PartDelta | ToolCallDelta
Encode = Callable[[str], bytes]
EncodeAll = Callable[[list[str]], bytes]
encode_text: Encode = msgspec.json.Encoder().encode
"""A text as JSON; raises for a lone surrogate, which the general path can write."""
_encode_lines: EncodeAll = msgspec.json.Encoder().encode_lines
MARK = "\x00the text\x00"
"""Placeholder for the text in a frame that is made to find the bytes around it."""
_WRITTEN_MARK = dumps(MARK)


class Writer(NamedTuple):
    """Functions that write chunks of a text. If they raise, nothing was changed."""

    one: Encode
    """The bytes to send for a chunk."""
    many: EncodeAll
    """The bytes to send for several chunks."""


def lines_of(texts: list[str]) -> bytes:
    """Texts as JSON, separated by line breaks."""
    return _encode_lines(texts)[:-1]


class Flow:
    """How to write the next chunks of a part, if they only add text."""

    __slots__ = ("choice", "encode", "encode_all", "index", "kept", "kind")

    def __init__(self, like: Delta, writer: Writer, *kept: list[str]) -> None:
        self.kind = type(like)
        self.index = like.index
        self.choice = like.choice
        self.encode, self.encode_all = writer
        self.kept = kept
        """Lists that collect the chunks."""

    def beside(self, *kept: list[str]) -> Flow:
        """The same flow, with further lists that collect the chunks."""
        made = Flow.__new__(Flow)
        made.kind, made.index, made.choice = self.kind, self.index, self.choice
        made.encode, made.encode_all = self.encode, self.encode_all
        made.kept = (*self.kept, *kept)
        return made

    def texts_at(self, events: Sequence[Event], place: int) -> list[str]:
        """The texts of the matching events from there on."""
        if type(events) is EventList and (texts := events.texts_at(place)):
            first = events[place]
            return texts if is_plain(first) and self.is_for(first) else []
        index, choice, texts = self.index, self.choice, list[str]()
        take, is_call = texts.append, self.kind is ToolCallDelta
        for number in range(place, len(events)):
            event = events[number]
            if type(event) is PartDelta:  # `is_for` and `is_plain`, inlined
                text = event.text
                if (
                    is_call
                    or not text
                    or event.index != index
                    or event.choice != choice
                    or event.extras is not EMPTY
                    or event.signature is not None
                    or event.data is not None
                    or event.citations
                ):
                    break
                take(text)
            elif (
                type(event) is ToolCallDelta and self.is_for(event) and (text := _plain_text(event))
            ):
                take(text)
            else:
                break
        return texts

    def is_for(self, event: Delta) -> bool:
        """Whether an event is about the same part."""
        is_like = type(event) is self.kind and event.index == self.index
        return is_like and event.choice == self.choice


class FlowingEncoder:
    """An encoder with a shortcut for runs of plain deltas; `write` is the general path."""

    _run: tuple[Any, ...] | None = None  # the part of the previous event, if that was a delta
    flow: Flow | None = None
    """How to write the next plain delta of the current part; None: in the general way."""

    @property
    def has_default_feed(self) -> bool:
        """Whether `feed` is not overridden: one that a subclass overrides must see each event."""
        return type(self).feed is FlowingEncoder.feed

    def feed(self, event: Event) -> bytes:
        """The bytes to send for an event; empty if more events are needed first."""
        flow = self.flow
        if flow is not None:
            text = None
            if type(event) is PartDelta:  # `is_for` and `is_plain`, inlined
                if (
                    event.index == flow.index
                    and flow.kind is PartDelta
                    and event.choice == flow.choice
                    and event.extras is EMPTY
                    and event.signature is None
                    and event.data is None
                    and not event.citations
                ):
                    text = event.text
            elif type(event) is ToolCallDelta and flow.is_for(event):
                text = _plain_text(event)
            if text:
                try:
                    written = flow.encode(text)
                except UnicodeEncodeError:  # a lone surrogate
                    pass
                else:
                    for kept in flow.kept:
                        kept.append(text)
                    return written
            self.flow = None
        written = self.write(event)
        if type(event) is PartDelta or type(event) is ToolCallDelta:
            self._note_delta_of_run(event)
        else:
            self._run = None
        return written

    def feed_all(self, events: Sequence[Event]) -> bytes:
        """The bytes to send for several events: equivalent to `feed` for each, but faster.

        The events of one network read can be sent in one write.
        """
        if len(events) <= 1:
            return self.feed(events[0]) if events else b""
        written: list[bytes] = []
        is_own = self.has_default_feed
        place, count = 0, len(events)
        while place < count:
            flow = self.flow if is_own else None
            if flow is not None and (texts := flow.texts_at(events, place)):
                written.append(self._flown(events[place : place + len(texts)], texts))
                place += len(texts)
            else:
                written.append(self.feed(events[place]))
                place += 1
        return b"".join(written)

    def _flown(self, events: Sequence[Event], texts: list[str]) -> bytes:
        """Write events that match the flow."""
        flow = self.flow
        if flow is not None and len(texts) > 1:
            try:
                written = flow.encode_all(texts)
            except UnicodeEncodeError:  # a lone surrogate
                pass
            else:
                for kept in flow.kept:
                    kept.extend(texts)
                return written
        return b"".join([self.feed(event) for event in events])

    def _note_delta_of_run(self, event: Delta) -> None:
        """Create the flow at the second plain delta of a part: many parts are short."""
        run, self._run = self._run, (type(event), event.index, event.choice)
        if run == self._run and is_plain(event) and switch.is_on():
            self.flow = self.flow_after(event)

    def close(self) -> bytes:
        """The last bytes; an error if the events ended early (G1)."""
        self.flow = None
        return self._close()

    def write(self, event: Event) -> bytes:
        """The bytes to send for an event, in the general way: for `feed` and wrapping encoders."""
        raise NotImplementedError

    def _close(self) -> bytes:
        """The last bytes."""
        raise NotImplementedError

    def flow_after(self, event: Delta) -> Flow | None:  # noqa: ARG002 - for subclasses
        """How to write deltas like the plain one that was just written."""
        return None


def is_plain(event: Event) -> TypeGuard[Delta]:
    """Whether an event only adds text."""
    if type(event) is PartDelta:
        return bool(event.text) and event.extras is EMPTY and event.citations == () and (
            event.signature is None and event.data is None
        )  # fmt: skip
    return type(event) is ToolCallDelta and bool(_plain_text(event))


def _plain_text(event: ToolCallDelta) -> str | None:
    """The arguments in a chunk of a call that has nothing else."""
    has_more = event.id or event.name or event.signature or event.extras is not EMPTY
    return None if has_more or event.kind != "function" else event.arguments_delta


def general_path(encoder: StreamEncoder) -> Callable[[Event], bytes]:
    """How a wrapping encoder writes to the inner one."""
    return encoder.write if _is_flowing(encoder) else encoder.feed


def inner_flow(encoder: StreamEncoder, event: Delta) -> Flow | None:
    """The flow of an inner encoder that has just written this event."""
    return encoder.flow_after(event) if _is_flowing(encoder) else None


def _is_flowing(encoder: StreamEncoder) -> TypeGuard[FlowingEncoder]:
    """Whether runs may bypass `feed`: one that an installed dialect overrides sees each event."""
    return isinstance(encoder, FlowingEncoder) and encoder.has_default_feed


def around(before: bytes, after: bytes) -> Writer:
    """A writer of JSON texts between these bytes."""
    between = after + before

    def encode(text: str) -> bytes:
        return before + encode_text(text) + after

    def encode_all(texts: list[str]) -> bytes:
        return before + lines_of(texts).replace(b"\n", between) + after

    return Writer(encode, encode_all)


def around_mark(frame: bytes, count: int = 1) -> Writer | None:
    """A writer made from a frame with the placeholder in it, `count` times."""
    before, *between = frame.rsplit(_WRITTEN_MARK, count)
    if len(between) != count:
        return None
    if count == 1:
        return around(before, between[0])

    def encode(text: str) -> bytes:
        return encode_text(text).join([before, *between])

    def encode_all(texts: list[str]) -> bytes:
        return b"".join([line.join([before, *between]) for line in lines_of(texts).split(b"\n")])

    return Writer(encode, encode_all)


def _no_bytes(_text: Any) -> bytes:
    return b""


NO_BYTES = Writer(_no_bytes, _no_bytes)
"""For parts that are written only when complete."""
