"""Complete responses for the clients of a dialect.

The dialects' encoders write the content of a response. A server's clients expect more: the same id,
time and model in every frame of a stream, the settings they requested, and errors with their
headers. What is specific to a dialect is in its `FrontForm`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from math import ceil
from typing import Any, NamedTuple, Protocol

from dragoman.errors import DragomanError, ProviderError, ServerError, StreamInterrupted
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
from dragoman.wire.answer_errors import FAILED, failure_among, failure_in
from dragoman.wire.context import Context
from dragoman.wire.cut_calls import ends_within_part
from dragoman.wire.dialect import Dialect, dialect
from dragoman.wire.encoded import Encoded
from dragoman.wire.error_classification import decode_failure
from dragoman.wire.error_reporting import client_message, reported
from dragoman.wire.front_settings import client_settings
from dragoman.wire.fronts import StateFields
from dragoman.wire.lane.flows import Delta, Flow, FlowingEncoder, general_path, inner_flow
from dragoman.wire.losses import Loss, Repair
from dragoman.wire.stream_encoding import INTERRUPTED
from dragoman.wire.streams import StreamEncoder

_JSON = "application/json"
_MAX_RETRY_AFTER = 10**9
"""Waits above thirty years are not sent."""


def _as_it_is(_encoded: Encoded, _response: Response, _front: Front) -> None:
    """Complete nothing."""


def _with_status(_body: Mapping[str, Any], status: int, message: str) -> StreamError:
    """An error event whose form the dialect's encoder derives from the status."""
    return StreamError(message, None, status)


def _event_stream(_front: Front) -> str:
    return "text/event-stream"


class PassingFilter(Protocol):
    """Removes something from a stream that is passed through; may be fed bytes split anywhere."""

    @property
    def gap(self) -> bytes:
        """What must be sent before another frame."""
        ...

    def feed(self, data: bytes, /) -> bytes:
        """The bytes to pass on: whole frames."""
        ...

    def close(self) -> bytes:
        """The rest, when the stream has ended normally."""
        ...


class AgentForm(NamedTuple):
    """What certain clients of a dialect expect; they are recognised by their user agent."""

    name: str = ""
    """Its name: what was written for it, such as a cached response, is not for other clients."""
    takes_pieces: bool = True
    """Whether tool calls may be streamed in pieces."""
    stream_fields: Mapping[str, bytes] = EMPTY
    """Fields, as JSON, to assume in a request for a stream."""
    state_fields: Callable[[Request], StateFields] | None = None
    """Where it keeps thinking and state, by its request; None: as other clients do."""
    stream_encoder: Callable[[Front], StreamEncoder] | None = None
    """Creates the encoder of its streams; None: the one for other clients."""
    takes_own: bool = True
    """Whether it understands any response in its dialect, so that bytes may be passed through."""


def _passes_as_it_is(_request: Request) -> None:
    """Filter nothing."""


_NO_AGENTS: Mapping[bytes, AgentForm] = {}


class FrontForm(NamedTuple):
    """What the clients of a dialect expect, beyond what its encoders write."""

    id_prefix: str | None = None
    """Prefix of response ids; None if responses have no ids."""
    has_time: bool = False
    """Whether responses have a creation time."""
    complete: Callable[[Encoded, Response, Front], None] = _as_it_is
    """Fills in what the body of a non-streamed response lacks."""
    state_fields: Callable[[Request], StateFields] | None = None
    """Where clients keep thinking and state, by their request; None: as the dialect says."""
    stream_encoder: Callable[[Front], StreamEncoder] | None = None
    """Creates the encoder for complete streams; None: the dialect's usual encoder."""
    stream_error: Callable[[Mapping[str, Any], int, str], StreamError] = _with_status
    """The event for a mid-stream error, given the body and status of its plain form."""
    stream_type: Callable[[Front], str] = _event_stream
    """The content type of a stream."""
    request_id_header: str | None = "x-request-id"
    says_failures: bool = False
    """Whether a response itself can report a failure; otherwise it becomes an error."""
    request_headers: tuple[str, ...] = ()
    """Request headers that matter to decoding, in lower case."""
    streams_by_default: bool = False
    """Whether a request that doesn't set `stream` gets a stream."""
    content: tuple[str, bytes] | None = None
    """The content field of a non-streamed response, and its JSON value if there is no content."""
    passing_filter: Callable[[Request], PassingFilter | None] = _passes_as_it_is
    """Removes what the client did not request from a stream that is passed through."""
    agents: Mapping[bytes, AgentForm] = _NO_AGENTS
    """Clients with other expectations, by what their user agent contains."""


_PLAIN = FrontForm()


def front_form(dialect: Dialect) -> FrontForm:
    """What the clients of a dialect expect."""
    return getattr(dialect, "front_form", None) or _PLAIN


class ErrorAnswer(NamedTuple):
    """An error response: status, headers and body."""

    status: int
    headers: Mapping[str, str]
    body: dict[str, Any]

    def to_bytes(self) -> bytes:
        """The body as JSON."""
        return dumps(self.body)

    def __repr__(self) -> str:
        return f"ErrorAnswer({self.status})"


class Front:
    """Encodes the response to one client request, in the client's dialect.

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
        response_id: str | None = None,
        response_fields: Mapping[str, Any] = EMPTY,
        agent: AgentForm | None = None,
    ) -> None:
        """For a dialect and a request decoded from it; `path` is the path of the request.

        Gemini's clients choose the stream format in the path's query. A server that stores
        responses gives them its own ids (`response_id`, which replaces the model's) and sets fields
        itself (`response_fields`, for Responses: `store`, `previous_response_id` …). `agent` is
        for clients that expect something else than others of the dialect (`FrontForm.agents`).
        """
        self.dialect = dialect(name) if isinstance(name, str) else name
        self.request = Request() if request is None else request
        self.path = path
        self.response_id = response_id
        self.response_fields = response_fields
        self.form = self._form()
        self.agent = agent
        self._id: str | None = None
        self._request_id: str | None = None
        self._clock = clock
        self.began = clock()
        self.created_at = self.began if self.form.has_time else None

    def __repr__(self) -> str:
        return f"<front {self.dialect.name}>"

    def _form(self) -> FrontForm:
        return front_form(self.dialect)

    @property
    def request_id(self) -> str:
        """The id of the request."""
        made = self._request_id
        if made is None:
            made = self._request_id = new_id("req_")
        return made

    @property
    def id(self) -> str | None:
        """The id for responses that have none."""
        if self.response_id is not None:
            return self.response_id
        if self._id is None and self.form.id_prefix is not None:
            self._id = new_id(self.form.id_prefix)
        return self._id

    @property
    def elapsed(self) -> float:
        """Seconds since the request arrived."""
        return max(0.0, self._clock() - self.began)

    @cached_property
    def asked(self) -> Mapping[str, Any]:
        """The client's settings as sent: the body of its request without the messages."""
        return client_settings(self.dialect, self.request.replace_trusted(messages=()))

    @property
    def headers(self) -> dict[str, str]:
        """The request id header, if the dialect's servers send one."""
        name = self.form.request_id_header
        return {} if name is None else {name: self.request_id}

    @property
    def stream_maker(self) -> Callable[[Front], StreamEncoder] | None:
        """Creates the encoder of this client's streams; None: the dialect's usual encoder."""
        made = None if self.agent is None else self.agent.stream_encoder
        return self.form.stream_encoder if made is None else made

    @cached_property
    def context(self) -> Context:
        """What the dialect's encoders need to know about the client."""
        agent = self.agent
        find = (agent and agent.state_fields) or self.form.state_fields
        fields = None if find is None else find(self.request)
        return Context(request=self.request, state_fields=fields)

    # --- non-streamed responses

    def response(self, response: Response) -> Encoded:
        """The complete body for a response.

        Raises the error of a failed response if the dialect can't express failure in a response,
        and `StreamInterrupted` if it ends within a call or a thought; pass it to `error`.
        """
        if not self.form.says_failures and any(map(_has_failed, response.choices)):
            failure = failure_in(response)
            assert failure is not None  # noqa: S101 - a choice has failed
            raise failure
        if ends_within_part(response):
            raise StreamInterrupted(INTERRUPTED.message, partial=response)
        stamp = {
            "id": self.response_id or response.id or self.id,
            "model": response.model or self.request.model,
            "created_at": response.created_at or self.created_at,
        }
        if self.response_id is None:
            stamped = response.replace_trusted(**stamp)  # the values of a response and a request
        else:
            choices = tuple(map(self._named, response.choices))
            stamped = response.replace(**stamp, choices=choices)
        encoded = self.dialect.encode_response(stamped, self.context)
        self.form.complete(encoded, stamped, self)
        encoded.headers = {"content-type": _JSON, **self.headers, **encoded.headers}
        return encoded

    def _named(self, choice: Choice) -> Choice:
        """A choice whose message id is derived from this response's id."""
        message = choice.message.replace_unchecked(id=message_id(self.response_id or ""))
        return choice.replace_unchecked(message=message)

    def is_own(self, origin: Origin | None) -> bool:
        """Whether something came from this dialect, so that its own fields are kept."""
        return origin is not None and origin.dialect == self.dialect.name

    def is_own_response(self, response: Response) -> bool:
        """Like `is_own`, for a whole response."""
        origins = [choice.message.origin for choice in response.choices]
        return self.dialect.name in response.extras or any(map(self.is_own, origins))

    # --- streams

    def stream(self) -> FrontEncoder:
        """An encoder that writes one response as a stream, with every frame complete."""
        make = getattr(self.dialect, "front_encoder", None)
        if make is None:
            return FrontEncoder(self, self.dialect.stream_encoder(self.context))
        return FrontEncoder(self, make(self))

    # --- errors

    def error(self, error: DragomanError) -> ErrorAnswer:
        """The error response to send if nothing was sent yet."""
        told = copy(reported(error))
        name = self.form.request_id_header
        headers = {"content-type": _JSON}
        if name is not None:
            told.request_id = headers[name] = told.request_id or self.request_id
        status, body = self.dialect.encode_error(told)
        if told.retry_after is not None and 0 <= told.retry_after < _MAX_RETRY_AFTER:
            headers["retry-after"] = str(ceil(told.retry_after))
        return ErrorAnswer(status, headers, body)

    def error_event(self, error: ProviderError) -> StreamError:
        """A mid-stream error event of the same kind as its plain form."""
        status, body = self.dialect.encode_error(error)
        return self.form.stream_error(body, status, client_message(error))


def message_id(answer_id: str) -> str:
    """The id of the message in a response, from which its item ids are derived.

    >>> message_id("resp_1f")
    'msg_1f'
    """
    return f"msg_{answer_id.partition('_')[2]}"


def _has_failed(told: Choice | ChoiceFinish) -> bool:
    return told.finish is FinishReason.ERROR


class FrontEncoder(FlowingEncoder):
    """Encodes one stream with the same id, time and model in all frames."""

    def __init__(self, front: Front, encoder: StreamEncoder) -> None:
        self._front = front
        self._encoder = encoder
        self._write = general_path(encoder)
        self._start = NOT_STARTED
        self._is_stamped = False
        self._is_waiting = False
        self._says_failures = front.form.says_failures

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers to send before the stream."""
        front = self._front
        return {"content-type": front.form.stream_type(front), **front.headers}

    @property
    def losses(self) -> Sequence[Loss]:
        """What could not be expressed so far."""
        return self._encoder.losses

    @property
    def repairs(self) -> Sequence[Repair]:
        """What was repaired so far."""
        return self._encoder.repairs

    def write(self, event: Event) -> bytes:
        """The bytes to send for an event, in the general way."""
        if type(event) is ResponseStart:
            return self._begun(event)
        begun = b"" if self._is_stamped else self._stamped()
        if type(event) is ChoiceFinish or type(event) is StreamError:
            event = self._end_here(event)
        return begun + self._write(event)

    def _end_here(self, event: ChoiceFinish | StreamError) -> ChoiceFinish | StreamError:
        """An end as this dialect reports it."""
        if isinstance(event, StreamError):
            return self._error_here(event)
        if self._says_failures or not _has_failed(event):
            return event
        failure = failure_among(self._start.extras, event.extras)
        return self._front.error_event(failure or ServerError(FAILED))

    def flow_after(self, event: Delta) -> Flow | None:
        """How to write deltas like the plain one that was just written."""
        return inner_flow(self._encoder, event)

    def _close(self) -> bytes:
        return self._stamped() + self._encoder.close()

    def resume(self, response: Response) -> None:
        """Continue a stream whose beginning, which has this, was sent in another way."""
        self._begun(
            ResponseStart(id=response.id, model=response.model, created_at=response.created_at)
        )
        self._stamped()

    def fail(self, error: DragomanError) -> bytes:
        """The last bytes of a stream that failed: the error as an event."""
        told, self.flow = reported(error), None
        return self._stamped() + self._write(self._front.error_event(told))

    def _begun(self, event: ResponseStart) -> bytes:
        """Handle metadata of the response; values that are missing at first are never sent later.

        Azure's preamble to Chat has no metadata yet, so one such event is let through.
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
        if start.id and start.model and has_time and front.response_id is None:
            return
        self._start = start.replace(
            id=front.response_id or start.id or front.id,
            model=start.model or front.request.model,
            created_at=start.created_at or front.created_at,
        )

    def _error_here(self, event: StreamError) -> StreamError:
        """Re-encode another dialect's error in this dialect's form."""
        front = self._front
        if front.is_own(self._start.origin) or front.dialect.name in event.extras:
            return event
        body = {"error": {"code": event.code, "message": event.message}}
        made = front.error_event(decode_failure(event.status, body))
        return made.replace(extras={**event.extras, **made.extras})
