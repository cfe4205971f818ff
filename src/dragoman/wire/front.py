"""Answers for the clients of a dialect, complete: what they get for a request of their own.

The dialects' encoders write what a response says. A server's clients expect more: an id, a time and
a model in every frame of a stream, the same in all of them, the settings that they asked for, and
errors with their headers. What is particular to a dialect is its `FrontForm`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from math import ceil
from typing import Any, NamedTuple, Protocol

from dragoman.errors import DragomanError, ProviderError, ServerError
from dragoman.model.events import (
    NOT_STARTED,
    ChoiceFinish,
    Event,
    ResponseStart,
    StreamError,
)
from dragoman.model.frozen import EMPTY
from dragoman.model.ids import new_id
from dragoman.model.jsontext import dumps
from dragoman.model.parts import Origin
from dragoman.model.requests import Request
from dragoman.model.responses import Choice, Response
from dragoman.model.usage import FinishReason
from dragoman.wire.context import Context
from dragoman.wire.dialect import Dialect, dialect, is_dialect
from dragoman.wire.encoded import Encoded
from dragoman.wire.error_classification import decode_failure
from dragoman.wire.error_reporting import reported
from dragoman.wire.front_settings import asked_in
from dragoman.wire.lane.flows import Delta, Flow, FlowingEncoder, inner_flow
from dragoman.wire.losses import Loss, Repair
from dragoman.wire.streams import StreamEncoder

_JSON = "application/json"
_MOST_SECONDS = 10**9
"""A wait that is longer than thirty years is not told."""


def _as_it_is(_encoded: Encoded, _response: Response, _front: Front) -> None:
    """Nothing to complete."""


def _with_status(_body: Mapping[str, Any], status: int, message: str) -> StreamError:
    """An error whose form the dialect's encoder finds by the status."""
    return StreamError(message, None, status)


def _event_stream(_front: Front) -> str:
    return "text/event-stream"


class PassingFilter(Protocol):
    """Takes something out of a stream whose bytes pass, cut anywhere; passes whole frames on."""

    @property
    def gap(self) -> bytes:
        """What has to be sent before another frame."""
        ...

    def feed(self, data: bytes, /) -> bytes:
        """The bytes to pass on."""
        ...

    def close(self) -> bytes:
        """What is left when the stream has ended as it should."""
        ...


class AgentForm(NamedTuple):
    """What some clients of a dialect count on, who are known by their user agent."""

    takes_pieces: bool = True
    """Whether calls of tools may be streamed in pieces."""
    stream_fields: Mapping[str, bytes] = EMPTY
    """Fields, as JSON, that a request for a stream is taken to have."""


def _passes_as_it_is(_request: Request) -> None:
    """Nothing to take out."""


_NO_AGENTS: Mapping[bytes, AgentForm] = {}


class FrontForm(NamedTuple):
    """What the clients of a dialect count on, beyond what its encoders write."""

    id_prefix: str | None = None
    """What ids of answers begin with; None where answers have no ids."""
    has_time: bool = False
    """Whether answers say when they were made."""
    complete: Callable[[Encoded, Response, Front], None] = _as_it_is
    """Fills in what the body of a whole answer lacks."""
    stream_encoder: Callable[[Front], StreamEncoder] | None = None
    """What writes complete streams; None: the dialect's usual encoder does."""
    stream_error: Callable[[Mapping[str, Any], int, str], StreamError] = _with_status
    """The event for an error in mid-stream, from the body and the status of its plain form."""
    stream_type: Callable[[Front], str] = _event_stream
    """The content type of a stream."""
    request_id_header: str | None = "x-request-id"
    says_failures: bool = False
    """Whether an answer itself can say that it failed; elsewhere it is an error."""
    request_headers: tuple[str, ...] = ()
    """Headers that say something about a request, in lower case."""
    streams_by_default: bool = False
    """Whether a request that says nothing about it is answered by a stream."""
    content: tuple[str, bytes] | None = None
    """Where a whole answer has its content, and what stands there in one that has none."""
    passing_filter: Callable[[Request], PassingFilter | None] = _passes_as_it_is
    """What to take out of a stream of the dialect's own that passes: what nobody asked for."""
    agents: Mapping[bytes, AgentForm] = _NO_AGENTS
    """By the beginning of their user agent: clients that count on something else."""


_PLAIN = FrontForm()


def front_form(dialect: Dialect) -> FrontForm:
    """What the clients of a dialect count on."""
    return getattr(dialect, "front_form", None) or _PLAIN


class ErrorAnswer(NamedTuple):
    """What to answer with for an error."""

    status: int
    headers: Mapping[str, str]
    body: dict[str, Any]

    def to_bytes(self) -> bytes:
        """The body as JSON."""
        return dumps(self.body)

    def __repr__(self) -> str:
        return f"ErrorAnswer({self.status})"


class Front:
    """Answers one request of a client, in the client's dialect.

    >>> request = dialect("openai-chat").decode_request({"model": "gpt-5", "messages": []})
    >>> Front("openai-chat", request).error(ProviderError("it failed")).status
    500
    """

    def __init__(
        self,
        name: str | Dialect,
        request: Request | None = None,
        *,
        path: str | None = None,
        clock: Callable[[], float] = time.time,
        own_id: str | None = None,
        says: Mapping[str, Any] = EMPTY,
    ) -> None:
        """For a dialect and the request that came in it; `path` is where it was sent.

        Gemini's clients say in the path's query in which form they want a stream. A server that
        keeps answers gives them ids of its own (`own_id`, whatever the model's answer has), and
        fields that are its own to say (Responses: `store`, `previous_response_id` …).
        """
        self.dialect = dialect(name) if isinstance(name, str) else name
        self.request = Request() if request is None else request
        self.path = path
        self.own_id = own_id
        self.says = says
        self.form = self._form()
        self._clock = clock
        self.began = clock()
        self.created_at = self.began if self.form.has_time else None

    def __repr__(self) -> str:
        return f"<front {self.dialect.name}>"

    def _form(self) -> FrontForm:
        return front_form(self.dialect)

    @cached_property
    def request_id(self) -> str:
        """The id of the request."""
        return new_id("req_")

    @cached_property
    def id(self) -> str | None:
        """For answers that have none of their own."""
        if self.own_id is not None:
            return self.own_id
        prefix = self.form.id_prefix
        return None if prefix is None else new_id(prefix)

    @property
    def elapsed(self) -> float:
        """Seconds since the request came."""
        return max(0.0, self._clock() - self.began)

    @cached_property
    def asked(self) -> Mapping[str, Any]:
        """The client's settings as it sent them: the body of its request without the messages."""
        return asked_in(self.dialect, self.request.replace_trusted(messages=()))

    @property
    def headers(self) -> dict[str, str]:
        """The id of the request, where the dialect's servers tell it in a header."""
        name = self.form.request_id_header
        return {} if name is None else {name: self.request_id}

    # --- whole answers

    def response(self, response: Response) -> Encoded:
        """The complete body for a response.

        Raises the error of an answer that failed, where the dialect has no word for it: `error`
        says what to answer with then.
        """
        if not self.form.says_failures and any(map(_has_failed, response.choices)):
            raise _failure(response.extras)
        stamped = response.replace(
            id=self.own_id or response.id or self.id,
            model=response.model or self.request.model,
            created_at=response.created_at or self.created_at,
        )
        if self.own_id is not None:
            stamped = stamped.replace(choices=tuple(map(self._named, stamped.choices)))
        encoded = self.dialect.encode_response(stamped, Context(request=self.request))
        self.form.complete(encoded, stamped, self)
        encoded.headers = {"content-type": _JSON, **self.headers, **encoded.headers}
        return encoded

    def _named(self, choice: Choice) -> Choice:
        """A choice whose message has an id that belongs to this answer's own."""
        message = choice.message.replace_unchecked(id=message_id(self.own_id or ""))
        return choice.replace_unchecked(message=message)

    def is_own(self, origin: Origin | None) -> bool:
        """Whether something came from this dialect, so that what it says of itself stays."""
        return origin is not None and origin.dialect == self.dialect.name

    def is_own_response(self, response: Response) -> bool:
        """The same of a whole answer."""
        origins = [choice.message.origin for choice in response.choices]
        return self.dialect.name in response.extras or any(map(self.is_own, origins))

    # --- streams

    def stream(self) -> FrontEncoder:
        """What writes one answer as a stream, every frame complete."""
        make = getattr(self.dialect, "front_encoder", None)
        if make is None:
            return FrontEncoder(self, self.dialect.stream_encoder(Context(request=self.request)))
        return FrontEncoder(self, make(self))

    # --- errors

    def error(self, error: DragomanError) -> ErrorAnswer:
        """What to answer with for an error, before anything was sent."""
        told = copy(reported(error))
        name = self.form.request_id_header
        headers = {"content-type": _JSON}
        if name is not None:
            told.request_id = headers[name] = told.request_id or self.request_id
        status, body = self.dialect.encode_error(told)
        if told.retry_after is not None and 0 <= told.retry_after < _MOST_SECONDS:
            headers["retry-after"] = str(ceil(told.retry_after))
        return ErrorAnswer(status, headers, body)

    def error_event(self, error: ProviderError, message: str) -> StreamError:
        """An error in mid-stream, of the same kind as its plain form."""
        status, body = self.dialect.encode_error(error)
        return self.form.stream_error(body, status, message)


def message_id(answer_id: str) -> str:
    """The id of the message in an answer: what ids of its items are made of.

    >>> message_id("resp_1f")
    'msg_1f'
    """
    return f"msg_{answer_id.partition('_')[2]}"


def _has_failed(told: Choice | ChoiceFinish) -> bool:
    return told.finish is FinishReason.ERROR


def _failure(extras: Mapping[str, Any]) -> ProviderError:
    """The error in a failed answer, as its own dialect reads it."""
    for source, fields in extras.items():
        told = fields.get("error") if isinstance(fields, Mapping) else None
        if isinstance(told, Mapping) and is_dialect(source):
            return dialect(source).decode_error(None, {"error": told})
    return ServerError("the model failed to answer")


class FrontEncoder(FlowingEncoder):
    """Writes one stream, with one id, one time and one model in all its frames."""

    def __init__(self, front: Front, encoder: StreamEncoder) -> None:
        self._front = front
        self._encoder = encoder
        self._write = encoder.feed
        self._start = NOT_STARTED
        self._is_stamped = False
        self._is_waiting = False
        self._says_failures = front.form.says_failures

    @property
    def headers(self) -> Mapping[str, str]:
        """What to send before the stream."""
        front = self._front
        return {"content-type": front.form.stream_type(front), **front.headers}

    @property
    def losses(self) -> Sequence[Loss]:
        """What could not be said so far."""
        return self._encoder.losses

    @property
    def repairs(self) -> Sequence[Repair]:
        """What was changed so that it can be said, so far."""
        return self._encoder.repairs

    def _feed(self, event: Event) -> bytes:
        if type(event) is ResponseStart:
            return self._begun(event)
        begun = self._stamped()
        if type(event) is ChoiceFinish and _has_failed(event) and not self._says_failures:
            told = reported(_failure(self._start.extras))
            event = self._front.error_event(told, told.reason)
        elif type(event) is StreamError:
            event = self._error_here(event)
        return begun + self._write(event)

    def _flow_after(self, event: Delta) -> Flow | None:
        return inner_flow(self._encoder, event)

    def _close(self) -> bytes:
        return self._stamped() + self._encoder.close()

    def fail(self, error: DragomanError) -> bytes:
        """The last bytes of an answer that failed on the way: the error, as an event."""
        told, self.flow = reported(error), None
        return self._stamped() + self._write(self._front.error_event(told, told.reason))

    def _begun(self, event: ResponseStart) -> bytes:
        """More is known of the answer; what it doesn't name at once is never named differently.

        Azure's preamble to Chat tells nothing yet: it waits, once.
        """
        if not self._is_stamped:
            self._start = self._start.filled(event)
            if not (event.id or event.model or self._is_waiting):
                self._is_waiting = True
                return self._write(event)
            self._stamp()
        start = self._start
        told = {"id": start.id, "model": start.model, "created_at": start.created_at}
        is_told = event.id is start.id and event.model is start.model
        if not is_told or event.created_at is not start.created_at:
            event = event.replace_unchecked(**told)
        return self._write(event)

    def _stamped(self) -> bytes:
        if self._is_stamped:
            return b""
        self._stamp()
        return self._write(self._start.replace(extras=EMPTY))

    def _stamp(self) -> None:
        front, start = self._front, self._start
        self._is_stamped = True
        has_time = start.created_at or start.created_at is front.created_at
        if start.id and start.model and has_time and front.own_id is None:
            return
        self._start = start.replace(
            id=front.own_id or start.id or front.id,
            model=start.model or front.request.model,
            created_at=start.created_at or front.created_at,
        )

    def _error_here(self, event: StreamError) -> StreamError:
        """An error of another dialect as the plain form of this one says it."""
        front = self._front
        if front.is_own(self._start.origin) or front.dialect.name in event.extras:
            return event
        body = {"error": {"code": event.code, "message": event.message}}
        made = front.error_event(decode_failure(event.status, body), event.message)
        return made.replace(extras={**event.extras, **made.extras})
