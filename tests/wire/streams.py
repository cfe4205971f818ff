"""How the test streams of all dialects are read, written and compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from dragoman.model.events import ChoiceFinish, Event, ResponseEnd, ResponseStart, UsageUpdate
from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Origin
from dragoman.model.responses import Response
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.dialect import Dialect
from dragoman.wire.streams import StreamDecoder, StreamEncoder

Decoded = tuple[StreamDecoder, list[Event]]

ELSEWHERE = Origin(dialect="openai-chat", model="gpt", response_id="chatcmpl-1")
START = ResponseStart(id="chatcmpl-1", model="gpt", created_at=7.0, origin=ELSEWHERE)
"""The start of another provider's answer."""
END: tuple[Event, ...] = (
    ChoiceFinish(FinishReason.STOP, "stop"),
    UsageUpdate(Usage(input=3, output=4)),
    ResponseEnd(),
)


class Decode(Protocol):
    """Decodes a stream, split at some places or given in pieces."""

    def __call__(self, stream: bytes | Iterable[bytes], cuts: Iterable[int] = (), /) -> Decoded:
        """The decoder, and the events."""
        ...


@dataclass(frozen=True)
class Failure:
    """A stream with an error in it, what is read of the error, and bytes that are written again."""

    stream: bytes
    message: str | None = None
    """`None`: whatever it is."""
    code: str | None = None
    status: int | None = None
    again: Sequence[bytes] = ()
    losses: Sequence[str] | None = None
    text: str | None = None
    """The response's text so far."""


MALFORMED = {
    f"malformed {number}": Failure(f"event: error\ndata: {error}\n\n".encode())
    for number, error in enumerate(
        ['{"error": "boom"}', '{"type": "error"}', '{"error": {"type": 7}}']
    )
}
"""Errors without a message, a type or an object, as server-sent events."""


class Ended(Protocol):
    """How an encoded stream ends: "complete" or "failed"; fails if it is malformed."""

    def __call__(self, stream: bytes, /, *, may_be_odd: bool = False) -> str:
        """`may_be_odd`: its source broke the provider's rules."""
        ...


@dataclass(frozen=True, kw_only=True)
class Streams:
    """The test streams of a dialect: a module `tests.wire.<dialect>.streams` has a `TABLE` of them.

    The tests of all dialects' streams run on each; what is true of most dialects is a default.
    """

    dialect: Dialect
    bodies: Mapping[str, Any]
    """Plain bodies by name."""
    frames: Mapping[str, Sequence[Any]]
    """For each body the frames of an equivalent stream."""
    written: Callable[[Iterable[Any]], bytes]
    """Frames as bytes."""
    encoder: Callable[[], StreamEncoder]
    """An encoder for complete streams, without envelopes."""
    ended: Ended
    said: Callable[[Response], Any]
    """A response as data, without generated ids."""
    last: Sequence[bytes]
    """What a recorded stream's last frame has one of."""
    failures: Mapping[str, Failure]
    in_pieces: tuple[Sequence[Any], str, Sequence[str]] | None
    """Frames with a text in pieces, the kinds of their events, and the texts in these."""
    words: Sequence[str]
    """Words and keys that random frames consist of."""
    keys: Sequence[str]
    recorded_faults: Mapping[str, str] = EMPTY
    """Recorded streams that aren't as they should be: the fault is in the recording.

    "failed" with an error; "unfinished" without an end; "several" calls, of which the first is
    read; "renamed" ids in each event; "corrected" texts, which contradict their pieces.
    """
    is_sse: bool = True
    order: Literal["kept", "kept if valid", "other"] = "kept"
    """Whether accumulated events have their parts in the order of the response."""
    generated: Sequence[str] = ()
    """The streams whose events have generated ids."""
    encoded_as: Mapping[str, Any] = EMPTY
    """The bodies that are encoded otherwise than the provider wrote them."""
    lost_when_cut: Sequence[str] | None = None
    """Reasons of losses when the events of an incomplete stream are written; `None`: any."""
    decided_before: int | None = 0
    """How many frames before the last one have the finish reason; `None`: it varies."""

    def frame(self, data: str, name: str = "") -> bytes:
        """A frame with this text, whatever it is; server-sent events may have a name."""
        lead = f"event: {name}\ndata: " if name else "data: "
        text = f"{lead}{data}\n\n" if self.is_sse else f"{data}\n"
        return text.encode(errors="surrogateescape")

    def decoded(self, stream: bytes | Iterable[bytes], cuts: Iterable[int] = ()) -> Decoded:
        """The decoder, and the events."""
        return decoding(self.dialect)(stream, cuts)

    def encoded(self, events: Iterable[Event]) -> tuple[StreamEncoder, bytes]:
        """The encoder, and the bytes."""
        return encoding(self.encoder)(events)


def decoding(dialect: Dialect) -> Decode:
    """Decodes this dialect's streams."""

    def decoded(stream: bytes | Iterable[bytes], cuts: Iterable[int] = (), /) -> Decoded:
        decoder = dialect.stream_decoder()
        pieces = split(stream, cuts) if isinstance(stream, bytes) else stream
        events = [event for piece in pieces for event in decoder.feed(piece)]
        return decoder, events + decoder.close()

    return decoded


def split(stream: bytes, cuts: Iterable[int]) -> list[bytes]:
    """The pieces of a stream that is split at some places."""
    places = sorted(cuts)
    return [stream[a:b] for a, b in zip([0, *places], [*places, len(stream)], strict=True)]


def encoding(
    encoder_of: Callable[[], StreamEncoder],
) -> Callable[[Iterable[Event]], tuple[StreamEncoder, bytes]]:
    """Encodes events; returns the encoder and the bytes."""

    def encoded(events: Iterable[Event]) -> tuple[StreamEncoder, bytes]:
        encoder = encoder_of()
        return encoder, b"".join([*map(encoder.feed, events), encoder.close()])

    return encoded


def written(events: Iterable[dict[str, Any]]) -> bytes:
    """Events with types as server-sent event bytes."""
    return b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()
        for event in events
    )


def said(response: Response, *, is_by_value: bool = False) -> dict[str, Any]:
    """The response as data, without generated ids; arguments may be compared by value."""
    document: dict[str, Any] = json.loads(response.to_json())["value"]
    made: dict[str, str] = {}
    for choice in document.get("choices", ()):
        del choice["message"]["id"]
        for part in choice["message"].get("parts", ()):
            if part["type"] != "tool_call":
                continue
            if "wire_id" in part:
                part["id"] = made.setdefault(part["id"], f"id {len(made)}")
            if is_by_value and (raw := part.pop("raw", None)) is not None:
                part["input"] = _value(raw) if part.get("kind") != "custom" else raw
    return document


def _value(raw: str) -> Any:
    try:
        return json.loads(raw or "{}")
    except ValueError:
        return raw
