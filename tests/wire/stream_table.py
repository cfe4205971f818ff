"""The test streams of all dialects, as one table.

Each dialect has a module `tests.wire.<dialect>.streams` with what `Streams` lists; the tests of
all dialects' streams run on every such module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, Protocol, cast

import pytest

import dragoman
from dragoman.model.events import Event
from dragoman.model.responses import Response
from dragoman.wire.dialect import Dialect
from dragoman.wire.streams import StreamEncoder
from tests.wire.streams import Decoded, Failure, InPieces, decoding, encoding


class Streams(Protocol):
    """What each dialect's module of test streams has."""

    DIALECT: Dialect
    BODIES: Mapping[str, Any]
    """Plain bodies by name."""
    FRAMES: Mapping[str, Sequence[Any]]
    """For each body the frames of an equivalent stream."""
    FORMS: Sequence[str]
    """The formats that a stream may have."""
    GENERATED: frozenset[str]
    """The streams whose events have generated ids."""
    ENCODED: Mapping[str, Any]
    """The bodies that are encoded otherwise than the provider wrote them."""
    ORDER: Literal["kept", "kept if valid", "other"]
    """Whether accumulated events have their parts in the order of the response."""
    FAILURES: Mapping[str, Failure]
    IN_PIECES: InPieces
    KEYS: Sequence[str]
    """Keys and words that random frames consist of."""
    WORDS: Sequence[str]
    LOST_WHEN_CUT: frozenset[str] | None
    """Reasons of losses when the events of an incomplete stream are written; `None`: any."""
    DECIDED_BEFORE: int | None
    """How many frames before the last one have the finish reason; `None`: it varies."""

    def written(self, frames: Iterable[Any], form: str = ...) -> bytes:
        """The frames as bytes."""
        ...

    def encoder(self, form: str = ...) -> StreamEncoder:
        """An encoder for complete streams, without envelopes."""
        ...

    def ended(self, stream: bytes, form: str = ..., *, may_be_odd: bool = ...) -> str:
        """How an encoded stream ends: "complete" or "failed"; fails if it is malformed.

        `may_be_odd`: its source broke the provider's rules.
        """
        ...

    def said(self, response: Response) -> Any:
        """The response as data, without generated ids."""
        ...

    def is_end(self, frame: bytes) -> bool:
        """Whether a frame of a recorded stream is one that may end it."""
        ...


def streams_of(dialect: str) -> Streams:
    """The test streams of a dialect."""
    return cast("Streams", import_module(f"tests.wire.{dialect.replace('-', '_')}.streams"))


TABLE = {name: streams_of(name) for name in dragoman.dialects()}


@dataclass(frozen=True)
class Case:
    """One stream of one dialect, in one format."""

    dialect: str
    name: str
    form: str

    @property
    def its(self) -> Streams:
        """The dialect's module."""
        return TABLE[self.dialect]

    @property
    def body(self) -> Any:
        """The plain body."""
        return self.its.BODIES[self.name]

    @property
    def frames(self) -> list[Any]:
        """The frames of the stream."""
        return list(self.its.FRAMES[self.name])

    @property
    def stream(self) -> bytes:
        """The stream."""
        return self.its.written(self.frames, self.form)

    def decoded(self, stream: bytes | Iterable[bytes], cuts: Iterable[int] = ()) -> Decoded:
        """The decoder, and the events."""
        return decoding(self.its.DIALECT)(stream, cuts)

    def encoded(self, events: Iterable[Event]) -> tuple[StreamEncoder, bytes]:
        """The encoder, and the bytes."""
        return encoding(lambda: self.its.encoder(self.form))(events)


def cases(dialect: str) -> list[Case]:
    """The streams of a dialect, in each format."""
    its = TABLE[dialect]
    return [Case(dialect, name, form) for form in its.FORMS for name in its.BODIES]


EVERY = pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=f"{case.dialect}-{case.form}-{case.name}")
        for dialect in TABLE
        for case in cases(dialect)
    ],
)
"""A test that runs on every stream."""


def frame(data: str, form: str, name: str = "") -> bytes:
    """A frame with this text, whatever it is; server-sent events may have a name."""
    if form == "ndjson":
        return f"{data}\n".encode(errors="surrogateescape")
    text = f"{name and f'event: {name}'}\ndata: {data}\n\n"
    return text.encode(errors="surrogateescape")
