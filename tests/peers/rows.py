"""The rows of the table, and what comes of what they give."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import dragoman
from dragoman import model
from dragoman.errors import DragomanError
from dragoman.model.events import Event
from dragoman.model.responses import Response
from dragoman.wire.losses import Loss, Repair
from dragoman.wire.violations import Violation
from tests.wire.front_types import request_to

Frame = Mapping[str, Any] | str | bytes
Claim = Callable[["Outcome"], None]


@dataclass(frozen=True)
class Request:
    """A client's request in a dialect."""

    dialect: str
    body: Mapping[str, Any]
    path: str | None = None


@dataclass(frozen=True)
class Answer:
    """A provider's whole response in a dialect."""

    dialect: str
    body: Mapping[str, Any]


@dataclass(frozen=True)
class Stream:
    """A provider's stream in a dialect."""

    dialect: str
    frames: tuple[Frame, ...]

    @property
    def data(self) -> bytes:
        """The stream as bytes."""
        return b"".join(map(self._written, self.frames))

    def _written(self, frame: Frame) -> bytes:
        if isinstance(frame, bytes):
            return frame
        text = frame if isinstance(frame, str) else json.dumps(frame, ensure_ascii=False)
        if self.dialect == "ollama":
            return f"{text}\n".encode()
        kind = frame.get("type") if isinstance(frame, Mapping) else None
        name = f"event: {kind}\n" if isinstance(kind, str) else ""
        return f"{name}data: {text}\n\n".encode()


@dataclass(frozen=True)
class Row:
    """A reported bug."""

    what: str
    """What must hold, in a sentence."""
    reported: str
    """Where users reported it: `owner/name#number`; or what else it is known from."""
    given: Request | Answer | Stream
    holds: tuple[Claim, ...]
    to: tuple[str, ...] = ()
    """The targets or fronts that it is sent to; all dialects if there is none."""

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets or fronts that it is sent to."""
        return self.to or dragoman.dialects()


@dataclass(frozen=True)
class Outcome:
    """What comes of something for one target."""

    row: Row
    target: str
    body: Any = None
    """The body that is sent; of a stream, the list of its frames (texts where they are no JSON)."""
    losses: tuple[Loss, ...] = ()
    repairs: tuple[Repair, ...] = ()
    violations: tuple[Violation, ...] = ()
    """What `check` finds in a request that is sent."""
    error: DragomanError | None = None
    """What was raised instead."""
    read: Response | model.Request | None = None
    """What was given, as it was read."""
    seen: Response | None = None
    """What the front's client reads of a response."""
    is_complete: bool = True
    """Whether the front's client sees the end of the response."""
    whole: Outcome | None = None
    """For a stream: the same as a whole response."""
    found: tuple[Violation, ...] = ()
    """What `check` finds in what was given, for the same target, if it is its dialect."""

    @property
    def text(self) -> str:
        """What is sent, as JSON."""
        return json.dumps(self.body, ensure_ascii=False)

    @property
    def reports(self) -> str:
        """All losses and repairs as text."""
        lost = [f"{loss.path}: {loss.reason}" for loss in self.losses]
        return "\n".join(lost + [f"{each.path}: {each.reason}" for each in self.repairs])


def outcome(row: Row, target: str) -> Outcome:
    """What comes of a row for one of its targets."""
    given = row.given
    if isinstance(given, Request):
        return _sent(row, given, target)
    if isinstance(given, Answer):
        return _answered(row, given, target)
    return _streamed(row, given, target)


def _sent(row: Row, given: Request, target: str) -> Outcome:
    read = None
    try:
        read = dragoman.dialect(given.dialect).decode_request(given.body, path=given.path)
        encoded = dragoman.translate(
            given.body, source=given.dialect, target=target, path=given.path
        )
    except DragomanError as error:
        return Outcome(row, target, error=error, read=read)
    found = dragoman.check(encoded.body, target=target, path=encoded.path, headers=encoded.headers)
    own = dragoman.check(given.body, target=target) if given.dialect == target else []
    return Outcome(
        row,
        target,
        json.loads(json.dumps(encoded.body)),
        tuple(encoded.losses),
        tuple(encoded.repairs),
        tuple(found),
        read=read,
        found=tuple(own),
    )


def _answered(row: Row, given: Answer, target: str) -> Outcome:
    try:
        read = dragoman.dialect(given.dialect).decode_response(given.body)
    except DragomanError as error:
        return Outcome(row, target, error=error)
    return _whole(row, read, target)


def _whole(row: Row, read: Response, target: str) -> Outcome:
    try:
        encoded = dragoman.Front(target, request_to(target)).response(read)
    except DragomanError as error:
        return Outcome(row, target, error=error, read=read)
    data = encoded.to_bytes()
    seen = dragoman.dialect(target).decode_response(data)
    return Outcome(
        row, target, json.loads(data), tuple(encoded.losses), tuple(encoded.repairs),
        read=read, seen=seen,
    )  # fmt: skip


def _streamed(row: Row, given: Stream, target: str) -> Outcome:
    source = dragoman.dialect(given.dialect).stream_decoder()
    front = dragoman.Front(target, request_to(target).replace(stream=True)).stream()
    events: list[Event] = []
    error = None
    try:
        events += source.feed(given.data)
        events += source.close()
    except DragomanError as raised:
        error = raised
        events += source.close()  # those before the fault
    sent = [front.feed(event) for event in events]
    sent.append(front.close() if error is None else front.fail(error))
    data = b"".join(sent)
    client = dragoman.dialect(target).stream_decoder()
    client.feed(data)
    client.close()
    return Outcome(
        row, target, _frames(data), tuple(front.losses), tuple(front.repairs),
        error=error, read=source.response, seen=client.response,
        is_complete=client.is_complete and error is None,
        whole=_whole(row, source.response, target),
    )  # fmt: skip


def _frames(data: bytes) -> list[Any]:
    """The frames of a stream that we wrote."""
    found: list[Any] = []
    for line in data.decode().split("\n"):
        text = line.removeprefix("data: ")
        if text and not line.startswith("event: "):
            try:
                found.append(json.loads(text))
            except ValueError:
                found.append(text)
    return found
