"""The protocols of stream decoders and encoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dragoman.model.events import Event
from dragoman.model.responses import Response
from dragoman.wire.losses import Loss, Repair


class StreamDecoder(Protocol):
    """Decodes one response from a stream's bytes, split anywhere."""

    @property
    def response(self) -> Response:
        """The response so far."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether the provider signalled the end; always false for a stream that ends early."""
        ...

    def feed(self, data: bytes) -> list[Event]:
        """The events completed by these bytes."""
        ...

    def close(self) -> list[Event]:
        """The remaining events when the stream ends."""
        ...


class StreamEncoder(Protocol):
    """Encodes one response as a stream, event by event."""

    @property
    def losses(self) -> Sequence[Loss]:
        """What could not be expressed so far."""
        ...

    @property
    def repairs(self) -> Sequence[Repair]:
        """What was repaired so far."""
        ...

    def feed(self, event: Event) -> bytes:
        """The bytes to send for an event."""
        ...

    def close(self) -> bytes:
        """The last bytes; an error if the events ended early (G1)."""
        ...
