"""What reads and writes a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from dragoman.errors import InvalidInputError, WireError
from dragoman.model.events import Event
from dragoman.model.jsontext import loads
from dragoman.model.responses import Response
from dragoman.wire.framing import SseEvent
from dragoman.wire.losses import Loss, Repair

_DONE = "[DONE]"  # Chat's last word, which gateways send in other dialects too
CORRECTED = "what was corrected at the end had been sent"
"""What is lost where the last word on a part takes back what was said in between (W26)."""


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


def unsent(sent: Iterable[str], whole: str) -> str | None:
    """What pieces have not said of a whole text; None where they said something else (W26)."""
    said = "".join(sent)
    return whole[len(said) :] if whole.startswith(said) else None


def unsent_arguments(sent: Sequence[str], whole: str) -> str | None:
    """As `unsent`, of a call's arguments: nothing where they are the same in other words."""
    more = unsent(sent, whole)
    if more is not None or not _is_same_json("".join(sent), whole):
        return more
    return ""


def _is_same_json(one: str, other: str) -> bool:
    try:
        return bool(loads(one) == loads(other))
    except InvalidInputError:
        return False


def read_frames(
    frames: Iterable[SseEvent], dialect: str, take: Callable[[Any, str | None], list[Event]]
) -> list[Event]:
    """The events of frames that are JSON objects; `take` reads one, given the name of its event."""
    events: list[Event] = []
    for frame in frames:
        if frame.data == _DONE:
            continue
        try:
            wire = loads(frame.data)
            if type(wire) is dict:
                events += take(wire, frame.event)
                continue
            problem = "an event is not a JSON object"
        except InvalidInputError as error:  # malformed, nested too deeply, a number out of range
            problem = str(error)
        raise WireError(problem, dialect=dialect, path="$")
    return events
