"""One attempt at a stream: the events in a reply's body, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from time import monotonic

from dragoman.errors import (
    DragomanError,
    ProviderError,
    ResponseTooLarge,
    StreamInterrupted,
    StreamSilent,
    TimeoutError,  # noqa: A004 - ours, which is the builtin's as well
    TransportError,
    WireError,
)
from dragoman.model.events import Event, PartDelta, PartStart, ResponseStart, StreamError
from dragoman.model.frozen import EMPTY
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCallDelta
from dragoman.transport.answers import events_of, made_at, origin_at, read_answer
from dragoman.transport.protocol import Reply, too_much
from dragoman.wire.context import Context
from dragoman.wire.cut_calls import ends_within_part
from dragoman.wire.dialect import Dialect
from dragoman.wire.framing import MAX_FRAME


class Silence:
    """Limits the time and the bytes between two events of a stream.

    Servers keep a connection open with comments while a model thinks. A broken one does so for
    ever, and every comment is a chunk that came in time.
    """

    __slots__ = ("_seconds", "_since", "_size")

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._since: float | None = None
        self._size = 0

    def end(self) -> None:
        """An event has come."""
        self._since, self._size = None, 0

    def grown(self, size: int) -> StreamSilent | None:
        """Note that many bytes without an event; returns the error if they were too many."""
        self._size += size
        now = monotonic()
        if self._since is None:
            self._since = now
        if self._size > MAX_FRAME:
            return StreamSilent(f"the stream brought no event in {MAX_FRAME:,} bytes")
        if self._seconds is None or now - self._since < self._seconds:
            return None
        return StreamSilent(
            f"the stream brought no event, only comments or blank lines, for {self._seconds:g}"
            " seconds (between_events)"
        )


_MAX_BUFFERED = 1024 * 1024
_EARLY = "the stream ended before the response was complete"
_INTERRUPTIONS = (StreamInterrupted, TimeoutError)
_CONTENT_EVENTS = (PartStart, PartDelta, ToolCallDelta)


class Incoming:
    """The events of one reply. Once `is_over`, `failure` is the error, if any."""

    def __init__(
        self, reply: Reply, dialect: Dialect, context: Context, *, provider: str, most: int,
        silence: float | None,
    ) -> None:  # fmt: skip
        """`most` and `silence` limit the bytes, and the seconds without an event."""
        self.is_over = False
        self.failure: DragomanError | None = None
        self._reply = reply
        self._pieces = reply.chunks()
        self._dialect = dialect
        self._provider = provider
        self._context = context
        self._decoder = dialect.stream_decoder(context)
        self._most = most
        self._size = 0
        self._silence = Silence(silence)
        self._has_begun = False
        self._kept: list[bytes] = []  # kept until it is known to be a stream
        self._whole: Response | None = None

    @property
    def response(self) -> Response:
        """The response so far."""
        return made_at(self._provider, self._whole or self._decoder.response)

    @property
    def is_complete(self) -> bool:
        """Whether the provider has marked the response as complete."""
        is_whole = self._whole is not None and self.failure is None
        return is_whole or self._decoder.is_complete

    async def close(self) -> None:
        """Stop reading."""
        self.is_over = True
        await self._reply.close()
        aclose = getattr(self._pieces, "aclose", None)
        if aclose is not None:  # a generator, of a custom transport
            with suppress(RuntimeError):  # another task is waiting for it
                await aclose()

    async def read(self) -> list[Event]:
        """The next events; there may be none yet. The last ones close it."""
        try:
            piece = await anext(self._pieces, None)
        except DragomanError as error:
            events = self._broken(error)
        else:
            events = self._ended() if piece is None else self._taken(piece)
        if self.is_over:
            await self.close()
        return events

    def _taken(self, piece: bytes) -> list[Event]:
        self._size += len(piece)
        if self._size > self._most:
            return self._broken(too_much(self._most))
        try:
            events = self._decoder.feed(piece)
        except WireError as error:
            return self._broken(error)
        if events:
            self._silence.end()
            return self._checked(events)
        if not self._has_begun and self._size <= _MAX_BUFFERED:
            self._kept.append(piece)
        silent = self._silence.grown(len(piece))
        return events if silent is None else self._broken(silent)

    def _checked(self, events: list[Event]) -> list[Event]:
        """The events to pass on: all of them, unless they are only an error."""
        for place, event in enumerate(events):
            if type(event) is StreamError:
                return self._refused(event, events)
            if type(event) is ResponseStart:
                events[place] = event.replace(origin=origin_at(self._provider, event.origin))
        if events:
            self._has_begun = True
        return events

    # --- endings

    def _ended(self) -> list[Event]:
        self.is_over = True
        events = self._decoder.close()
        if not events and not self._has_begun:
            return self._read_whole(b"".join(self._kept))
        events = self._checked(events)
        if self.failure is None and not self._decoder.is_complete:
            self._interrupt(_EARLY)
        return events

    def _read_whole(self, body: bytes) -> list[Event]:
        """A plain response from a server that doesn't stream; or an error, or nothing."""
        if not body.strip() or body.lstrip()[:1] == b":":
            self._interrupt("the stream was empty")
            return []
        try:
            self._whole = read_answer(self._dialect, body, self._context, self._reply.headers)
        except DragomanError as error:
            self.failure = error.with_traceback(None)  # its frames refer to this object
            return []
        if ends_within_part(self._whole):
            self._interrupt(_EARLY)
        return self._checked(list(events_of(self._whole)))

    def _broken(self, error: DragomanError) -> list[Event]:
        """The connection was lost; if the response was already complete, that doesn't matter."""
        self.is_over = True
        error.__traceback__ = None  # its frames refer to this object
        events: list[Event] = []
        if isinstance(error, _INTERRUPTIONS):
            events = self._checked(self._decoder.close())
        elif not self._has_begun and not self._decoder.response.choices:
            self.failure = error  # it was never a stream
        if self.failure is None and not self._decoder.is_complete:
            if isinstance(error, (ResponseTooLarge, StreamSilent)):
                error.partial = self.response
                self.failure = error
            else:
                self._interrupt(_reason(error))
        return events

    def _interrupt(self, text: str) -> None:
        self.failure = StreamInterrupted(text, partial=self.response)

    def _refused(self, event: StreamError, events: list[Event]) -> list[Event]:
        """The provider reports an error; before the first event it is like any other."""
        self.is_over = True
        error = reported_in_stream(self._dialect, event, self._reply.headers)
        if not self._has_begun and not any(isinstance(each, _CONTENT_EVENTS) for each in events):
            self.failure = error
            return []
        self.failure = StreamInterrupted(
            error.reason, partial=_failed(self.response, error.partial)
        )
        self.failure.__cause__ = error
        return events


def reported_in_stream(
    dialect: Dialect, event: StreamError, headers: Mapping[str, str]
) -> ProviderError:
    """The error that a provider reported in mid-stream."""
    fields = {"code": event.code, "message": event.message}
    told = event.extras.get(dialect.name, EMPTY)
    if "failed_generation" in told:  # W112
        fields["failed_generation"] = told["failed_generation"]
    return dialect.decode_error(event.status, {"error": fields}, headers)


def _reason(error: DragomanError) -> str:
    """The text without the provider and model, which are added once, at the end."""
    return error.reason if isinstance(error, (TransportError, ProviderError)) else str(error)


def _failed(heard: Response, failed: Response | None) -> Response:
    """The response so far, with the output that the provider did not pass on (W112)."""
    if failed is None or not failed.choices:
        return heard
    if not heard.choices:
        return heard.replace(choices=failed.choices)
    first, last = heard.choices[0], failed.choices[0]
    parts = (*first.message.parts, *last.message.parts)
    message = first.message.replace_unchecked(parts=parts, finish=last.finish)
    ended = first.replace(message=message, finish=last.finish, finish_raw=last.finish_raw)
    return heard.replace(choices=(ended, *heard.choices[1:]))
