"""Behaviour shared by all dialects.

Decoding reports malformed input as the peer's fault, requests are fitted to their target, and
responses carry the opaque state of the provider behind them. A dialect is a `Codec` built from its
own functions; behaviour that only one dialect has is in a subclass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, cached_property, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from dragoman.errors import DragomanError, InvalidInputError, ProviderError, WireError
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message
from dragoman.model.parts import Origin
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.wire.context import NOTHING, Context
from dragoman.wire.description import Description
from dragoman.wire.dialect import Body
from dragoman.wire.encoded import Encoded
from dragoman.wire.fitting import OwnSteps, encoded_for
from dragoman.wire.fitting.settings import has_hidden_context, missing_conversation
from dragoman.wire.fitting.turns import OPENING
from dragoman.wire.fronts import StateFields, encoded_behind
from dragoman.wire.json_values import parsed
from dragoman.wire.lane.switch import SWITCH
from dragoman.wire.losses import Repair
from dragoman.wire.overlay_edits import Places
from dragoman.wire.plain.reading import Reader, marked
from dragoman.wire.plain.requests import LEAST, encoded_plainly
from dragoman.wire.plain.whole import Simple, Whole, encoded_whole, note_target
from dragoman.wire.plain.writing import Write, begun, writer
from dragoman.wire.response_losses import ReportingEncoder, ResponseLimits, response_losses
from dragoman.wire.restoring import restoring
from dragoman.wire.sealing import SealingEncoder
from dragoman.wire.streams import StreamDecoder, StreamEncoder
from dragoman.wire.target import Target
from dragoman.wire.usage_details import UsageDetails
from dragoman.wire.violations import Rulebook, Violation

if TYPE_CHECKING:
    from dragoman.wire.front import Front, FrontForm
    from dragoman.wire.lane.plain import Lane
    from dragoman.wire.schemas import Profile
    from dragoman.wire.services import Services

T = TypeVar("T")


def on_use(module: str, name: str) -> Callable[..., Any]:
    """Return a function that imports its module on first call instead of with its dialect.

    A program that only sends requests never loads the decoders for responses, streams and errors.
    """

    @cache
    def found() -> Any:
        return getattr(import_module(module), name)

    def call(*given: Any, **named: Any) -> Any:
        return found()(*given, **named)

    return call


_is_error_body = on_use("dragoman.wire.error_bodies", "is_error_body")
_error_in_list = on_use("dragoman.wire.error_bodies", "error_in_list")
_decode_failure = on_use("dragoman.wire.error_classification", "decode_failure")


class Functions(NamedTuple):
    """The functions that make up a dialect, each next to its inverse."""

    decode_request: Callable[[dict[str, Any], str | None], Request]
    """Called with the body and the path."""
    encode_request: Callable[[Request, Target], Encoded]
    decode_response: Callable[[dict[str, Any]], Response]
    encode_response: Callable[[Response], Encoded]
    stream_decoder: Callable[[], StreamDecoder]
    stream_encoder: Callable[[], StreamEncoder]
    encode_error: Callable[[DragomanError], tuple[int, dict[str, Any]]]
    rulebook: Rulebook[Any] | str
    """The rulebook, or the module that has `RULEBOOK`, imported when a request is checked."""
    decode_error: Callable[[int | None, Any, Mapping[str, str] | None], ProviderError] = (
        _decode_failure
    )
    steps: OwnSteps = ()
    """Fitting steps for this dialect only, run before a request is encoded."""
    places: Places = EMPTY
    """What each request field stands for in the model: the names that `known_fields` guards."""
    unsupported: tuple[str, ...] = ()
    """The fields of parts that it has no rows for (`Union.unsupported`), such as `Image.name`."""
    further_fields: frozenset[str] = frozenset()
    """Request fields that stand for nothing in the model, but decide what a server does."""
    front_form: str | None = None
    """The module that has `FRONT_FORM`, for serving this dialect's clients; None if unused."""
    plain: str | None = None
    """The module that has `WRITTEN`, what is plain; None: the steps see every message."""
    lane: str | None = None
    """The module that has `LANE`, the fast path; None: every request takes the general path."""


@lru_cache(maxsize=32)
def _front_form(home: str) -> FrontForm:
    found: FrontForm = import_module(home).FRONT_FORM
    return found


def _problem(error: Exception) -> str:
    """Describe why a body could not be decoded."""
    return str(error) if isinstance(error, InvalidInputError) else "the JSON nests too deeply"


class Codec:
    """A dialect; see `dragoman.wire.dialect.Dialect` for what each method does."""

    def __init__(  # noqa: PLR0913 - a dialect says a lot about itself, by name
        self,
        description: Description,
        target: Target,
        functions: Functions,
        *,
        state_fields: StateFields | None = None,
        missing_counts: tuple[str, ...] = (),
        usage_details: UsageDetails | str | None = None,
        services: str | None = None,
        output_profile: Profile | None = None,
        schema_profiles: tuple[Profile, ...] = (),
    ) -> None:
        """Create a dialect from its description, default target and functions.

        `services` is the module that has `SERVICES`, imported on first use; `usage_details` may be
        the module that has `DETAILS`.
        """
        self.name = description.name
        self.description = description
        self.target = target
        self.messages_field = description.messages_field
        self.system_field = description.system_field
        self._functions = functions
        self._here = Origin(dialect=self.name)
        self._state_fields = state_fields
        self._services = services
        self.output_profile = output_profile
        self.schema_profiles = schema_profiles
        self._missing_counts = missing_counts
        self._usage_details = usage_details

    @cached_property
    def _limits(self) -> ResponseLimits:
        details = self._usage_details
        if isinstance(details, str):
            details = import_module(details).DETAILS
        return ResponseLimits(
            self.name, self._state_fields, self._missing_counts, self.target, details
        )

    @cached_property
    def _rulebook(self) -> Rulebook[Any]:
        rulebook = self._functions.rulebook
        if not isinstance(rulebook, str):
            return rulebook
        found: Rulebook[Any] = import_module(rulebook).RULEBOOK
        return found

    def __repr__(self) -> str:
        return f"<dialect {self.name}>"

    @property
    def places(self) -> Places:
        """What each known field of its requests stands for in the model."""
        return self._functions.places

    @property
    def unsupported(self) -> tuple[str, ...]:
        """The fields of parts that its requests can't have, unless its target lists them."""
        return self._functions.unsupported

    @property
    def further_fields(self) -> frozenset[str]:
        """Known fields that stand for nothing in the model, also those of its services."""
        return self._functions.further_fields

    # --- plain bodies

    def decode_request(
        self,
        body: Body,
        *,
        path: str | None = None,
        headers: Mapping[str, str] | None = None,  # noqa: ARG002 - most dialects ignore them
    ) -> Request:
        """The request in a body and its path."""
        if type(body) is bytes and SWITCH.is_on and (reader := self.reader) is not None:
            found = reader.request(body)
            if found is not None:
                return found
        return self._decoded(body, path)

    def _decoded(self, body: Body, path: str | None) -> Request:
        wire = self._opened(body)
        try:
            request = self._functions.decode_request(wire, path)
        except (InvalidInputError, RecursionError) as error:
            problem = _problem(error)
        else:
            return self._marked(request)
        raise WireError(problem, dialect=self.name, path="$")  # see `_read`

    @cached_property
    def reader(self) -> Reader | None:
        """The reader of plain requests; None if the dialect says nothing of them."""
        home = self._functions.plain
        known = None if home is None else getattr(import_module(home), "READABLE", None)
        if known is None:
            return None

        def decode(wire: dict[str, Any]) -> Request:
            return self._functions.decode_request(wire, None)

        return Reader(self.messages_field, self._here, known, decode)

    def _marked(self, request: Request) -> Request:
        """Record this dialect as the origin of everything in a request that was just decoded."""
        for message in request.messages:
            if message.origin is None:
                marked(message, self._here)
        if not request.messages and self.name not in request.extras:
            return request.replace(extras={**request.extras, self.name: EMPTY})  # the same marker
        return request

    def encode_request(
        self,
        request: Request,
        target: Target | None = None,
        *,
        strict: bool = False,
        repair: bool = True,
    ) -> Encoded:
        """Encode a request for a target; by default for the vendor's own deployment.

        Unedited messages that came in this dialect are sent back unchanged, except for what the
        target is known to refuse. `repair=False` encodes everything as given.
        """
        fitting = target or self.target
        if not repair:
            return self._encoded(request, fitting.relaxed, strict=strict)
        if (made := self._encoded_plainly(request, fitting, strict=strict)) is not None:
            return made
        came = 0
        for message in request.messages:
            if message.origin is not None and message.origin.dialect == fitting.dialect:
                came += fitting.owns(message)
        if came == len(request.messages) and (came or self.name in request.extras):
            return self._encoded_as_it_came(request, target, strict=strict)
        if not came:
            return self._encoded(request, fitting, strict=strict)
        encoded = self._encoded(request, fitting.keeping_own_messages, strict=strict)
        if target is not None and self._repairs_needed(encoded, target):
            return self._encoded(request, target, strict=strict)
        return encoded

    def _encoded_plainly(self, request: Request, target: Target, *, strict: bool) -> Encoded | None:
        plain = self._plain if SWITCH.is_on else None
        if plain is None:
            return None
        write, known = plain
        if known is not None and type(simple := target.findings.get("plain")) is Simple:
            first = begun(request.messages, write)
            found = encoded_whole(request, target, self.name, known, simple, first)
            if found is not None:
                return found
        else:
            first = None

        def general(request: Request) -> Encoded:
            return self._encoded(request, target, strict=False)

        if known is not None and first is None:
            note_target(target, self.name, known, write, general)
        if len(request.messages) < LEAST:
            return None
        first = first or begun(request.messages, write)
        made = encoded_plainly(request, target, self.messages_field, first, general)
        return made if made is None or not strict else made.or_raise()

    @cached_property
    def _plain(self) -> tuple[Write, Whole | None] | None:
        """How plain requests are written; None if the dialect says nothing of them."""
        if self._functions.plain is None:
            return None
        home = import_module(self._functions.plain)
        return writer(self.name, home.WRITTEN), getattr(home, "WHOLE", None)

    def with_usage_requested(
        self,
        request: Request,
        target: Target,  # noqa: ARG002 - most dialects always report usage
        *,
        always: bool = False,  # noqa: ARG002 - as above
    ) -> Request:
        """The request, set to make a stream report its usage."""
        return request

    def _encoded_as_it_came(
        self, request: Request, target: Target | None, *, strict: bool
    ) -> Encoded:
        """Encode a request that came in this dialect; repair only what is known to be refused."""
        if target is None:
            return self._encoded(request, self.target.relaxed, strict=strict)
        encoded = self._encoded(request, target.limited_to((), self.target), strict=strict)
        if flags := self._repairs_needed(encoded, target):
            return self._encoded(request, target.limited_to(flags, self.target), strict=strict)
        return encoded

    def _repairs_needed(self, encoded: Encoded, target: Target) -> frozenset[str]:
        return self._rulebook.repairs_needed(
            encoded.body, target, self.target, encoded.path, encoded.headers
        )

    def _encoded(self, request: Request, target: Target, *, strict: bool) -> Encoded:
        problem = missing_conversation(request, target) if target.is_strict else None
        if problem is not None:
            raise InvalidInputError(problem)
        own = self._functions
        encoded = encoded_for(request, target, own.encode_request, steps=own.steps, strict=strict)
        is_sent = request.messages and target.is_strict
        if is_sent and encoded.body.get(self.messages_field) in (None, []):
            self._open(encoded, request, target)
        return encoded

    def _open(self, encoded: Encoded, request: Request, target: Target) -> None:
        """Add an opening user message if nothing of the conversation could be encoded."""
        if has_hidden_context(request, request.messages, target):
            return
        opening = Request(messages=(Message.user(OPENING),))
        field = self.messages_field
        encoded.body[field] = self._functions.encode_request(opening, target).body[field]
        reason = "a placeholder, because nothing of the conversation could be sent"
        encoded.repairs = (*encoded.repairs, Repair("messages", "W47", "added", reason))

    def decode_response(self, body: Body, context: Context | None = None) -> Response:
        """Decode a response, restoring the request's own names and schemas.

        Some servers send an error with status 200: it is raised as `decode_error` decodes it.
        """
        wire = self._opened_response(body)
        answer_field = self.description.answer_field
        if answer_field is not None and _is_error_body(wire, answer_field):
            raise self.decode_error(None, wire)
        response = self._read(lambda: self._functions.decode_response(wire))
        return response if context is None else context.restored(response)

    def encode_response(
        self,
        response: Response,
        context: Context | None = None,
    ) -> Encoded:
        """Encode a response as the body to return to a client."""
        fields = self._fields_for(context)
        if fields is None:
            encoded = self._functions.encode_response(response)
        else:
            encoded = encoded_behind(fields, response, self._functions.encode_response)
        encoded.losses += tuple(response_losses(response, self._limits))
        return encoded

    def _opened_response(self, body: Body) -> dict[str, Any]:
        """Like `_opened`, and unwraps the list in which Gemini may send an error."""
        try:
            return self._opened(body)
        except WireError:
            found: dict[str, Any] | None = _error_in_list(body)
            if found is None:
                raise
        return found

    def _opened(self, body: Body) -> dict[str, Any]:
        wire = parsed(body, self.name)
        return wire if isinstance(wire, dict) else dict(wire)

    def _read(self, decode: Callable[[], T]) -> T:
        """Run a decoder; a value that no message can hold is reported as the peer's fault."""
        try:
            return decode()
        except (InvalidInputError, RecursionError) as error:
            problem = _problem(error)
        # Raised outside the handler, so that the model's error (same text) is not its context.
        raise WireError(problem, dialect=self.name, path="$")

    # --- streams

    def stream_decoder(self, context: Context | None = None) -> StreamDecoder:
        """A decoder for one streamed response that restores the request's own names and schemas."""
        return restoring(self._functions.stream_decoder(), context or NOTHING)

    def stream_encoder(
        self,
        context: Context | None = None,
    ) -> StreamEncoder:
        """An encoder that writes one response as a stream."""
        return self._sealing(self._functions.stream_encoder(), context)

    @cached_property
    def lane(self) -> Lane | None:
        """The fast path for plain conversations; None if the dialect has none."""
        home = self._functions.lane
        if home is None:
            return None
        found: Lane = import_module(home).LANE
        return found

    @property
    def front_form(self) -> FrontForm | None:
        """What its clients expect beyond what the encoders write; None if nothing."""
        home = self._functions.front_form
        if home is None:
            return None
        return _front_form(home)

    def front_encoder(self, front: Front) -> StreamEncoder:
        """A stream encoder that also writes everything the dialect's clients expect."""
        make = front.stream_maker
        if make is None:
            return self.stream_encoder(front.context)
        return self._sealing(make(front), front.context)

    def _sealing(self, encoder: StreamEncoder, context: Context | None = None) -> StreamEncoder:
        fields = self._fields_for(context)
        sealing = encoder if fields is None else SealingEncoder(encoder, fields)
        return ReportingEncoder(sealing, self._limits)

    def _fields_for(self, context: Context | None) -> StateFields | None:
        """Where the client of a response keeps thinking and state."""
        known = None if context is None else context.state_fields
        return self._state_fields if known is None else known

    # --- errors, rules and services

    def decode_error(
        self, status: int | None, body: Any, headers: Mapping[str, str] | None = None
    ) -> ProviderError:
        """Decode an error body or, without a status, a mid-stream error event. Never raises."""
        return self._functions.decode_error(status, body, headers)

    def encode_error(self, error: DragomanError) -> tuple[int, dict[str, Any]]:
        """The status and body to return to a client for an error."""
        return self._functions.encode_error(error)

    def check(
        self,
        body: Any,
        path: str | None = None,
        headers: Mapping[str, str] | None = None,
        target: Target | None = None,
    ) -> list[Violation]:
        """What the target would refuse in a request; by default the vendor's own deployment."""
        return self._read(lambda: self._rulebook.check(body, target, path, headers))

    def services(self) -> Services | None:
        """Services besides conversations (embeddings, model lists); None if there are none."""
        if self._services is None:
            return None
        found: Services = import_module(self._services).SERVICES
        return found
