"""What reads and writes a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dragoman.model.events import Event
from dragoman.model.responses import Response
from dragoman.wire.losses import Loss, Repair


class StreamDecoder(Protocol):
    """Reads one response out of a stream's bytes, cut anywhere."""

    @property
    def response(self) -> Response:
        """What has arrived so far."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether the provider said that it is done; a stream that ends early never is."""
        ...

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete."""
        ...

    def close(self) -> list[Event]:
        """What is left when the stream ends."""
        ...


class StreamEncoder(Protocol):
    """Writes one response as a stream, event by event."""

    @property
    def losses(self) -> Sequence[Loss]:
        """What could not be said so far."""
        ...

    @property
    def repairs(self) -> Sequence[Repair]:
        """What was changed so that it can be said, so far."""
        ...

    def feed(self, event: Event) -> bytes:
        """The bytes to send now."""
        ...

    def close(self) -> bytes:
        """The last bytes; those of an error, if the events ended early (G1)."""
        ...
