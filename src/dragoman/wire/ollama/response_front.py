"""Fields that Ollama clients expect in responses: timestamps and durations."""

from __future__ import annotations

from typing import Any

from dragoman.model import events
from dragoman.model.responses import Response
from dragoman.wire.encoded import Encoded
from dragoman.wire.front import Front, FrontForm
from dragoman.wire.ollama.stream import StreamEncoder
from dragoman.wire.times import encode_time

_NANOSECONDS = 1_000_000_000


def durations(front: Front, first: float) -> dict[str, int]:
    """Durations in nanoseconds; `first` is the time to the first output, in seconds."""
    total = int(front.elapsed * _NANOSECONDS)
    prompt = min(total, int(first * _NANOSECONDS))
    return {
        "total_duration": total,
        "load_duration": 0,
        "prompt_eval_duration": prompt,
        "eval_duration": total - prompt,
    }


def complete(encoded: Encoded, response: Response, front: Front) -> None:
    """Fill in the fields that a response lacks."""
    body = encoded.body
    if not body.get("model"):
        body["model"] = front.request.model or ""
    if not body.get("created_at"):
        body["created_at"] = encode_time(front.began)
    if not front.is_own_response(response):
        for key, value in durations(front, 0.0).items():
            body.setdefault(key, value)


class FrontStreamEncoder(StreamEncoder):
    """Writes a stream whose last line has durations."""

    def __init__(self, front: Front) -> None:
        super().__init__()
        self._front = front
        self._first: float | None = None

    def write(self, event: events.Event) -> bytes:
        """The bytes to send for an event."""
        if self._first is None and type(event) is not events.ResponseStart:
            self._first = self._front.elapsed
        return super().write(event)

    def _last(self) -> dict[str, Any]:
        """Additional fields of the last line."""
        is_own = self._front.is_own(self._start.origin)
        return {} if is_own else durations(self._front, self._first or 0.0)


FRONT_FORM = FrontForm(
    has_time=True,
    complete=complete,
    stream_encoder=FrontStreamEncoder,
    stream_type=lambda _front: "application/x-ndjson",
    request_id_header=None,
    content=("message", b'{"role":"assistant","content":""}'),
    streams_by_default=True,
)
