"""OpenAI's Responses API: a conversation is a flat list of items (messages, reasoning, calls)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.errors import DragomanError, InvalidInputError, ProviderError, WireError
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.wire import streams
from dragoman.wire.context import NOTHING, Context
from dragoman.wire.dialect import Body
from dragoman.wire.encoded import Encoded
from dragoman.wire.fitting import encoded_for
from dragoman.wire.fronts import encoded_behind
from dragoman.wire.openai_responses import request as requests
from dragoman.wire.openai_responses import response as responses
from dragoman.wire.openai_responses.errors import decode_error, encode_error
from dragoman.wire.openai_responses.forms import NAME
from dragoman.wire.openai_responses.front import FRONT
from dragoman.wire.openai_responses.rules import check
from dragoman.wire.openai_responses.stream_decoder import StreamDecoder
from dragoman.wire.openai_responses.stream_encoder import StreamEncoder
from dragoman.wire.openai_responses.target import TARGET
from dragoman.wire.overlay import parsed
from dragoman.wire.restoring import restoring
from dragoman.wire.sealing import SealingEncoder
from dragoman.wire.target import Target
from dragoman.wire.violations import Violation

__all__ = ["DIALECT", "OpenAIResponses"]


class OpenAIResponses:
    """The dialect, in both directions."""

    name = NAME
    messages_field = "input"
    system_field = "instructions"
    target = TARGET

    def decode_request(
        self, body: Body, *, path: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Request:
        """The request in a body; its path and headers say nothing more."""
        del path, headers
        wire = parsed(body, NAME)
        try:
            return requests.decode(wire)
        except InvalidInputError as error:
            problem = str(error)
        # Outside the handler: what the model refuses (depth, NaN) is the peer's doing.
        raise WireError(problem, dialect=NAME, path="$")

    def encode_request(
        self, request: Request, target: Target | None = None, *, strict: bool = False
    ) -> Encoded:
        """The body to send for a request."""
        encoded = encoded_for(request, target or TARGET, requests.encode, strict=strict)
        requests.begin(encoded.body, request)
        return encoded

    def decode_response(self, body: Body, context: Context = NOTHING) -> Response:
        """The response in a body."""
        wire = parsed(body, NAME)
        try:
            return context.restored(responses.decode(wire))
        except InvalidInputError as error:
            problem = str(error)
        raise WireError(problem, dialect=NAME, path="$")

    def encode_response(self, response: Response) -> Encoded:
        """The body to answer with for a response."""
        return encoded_behind(FRONT, response, responses.encode)

    def stream_decoder(self, context: Context = NOTHING) -> streams.StreamDecoder:
        """What reads one streamed response."""
        return restoring(StreamDecoder(), context)

    def stream_encoder(self) -> streams.StreamEncoder:
        """What writes one response as a stream."""
        return SealingEncoder(StreamEncoder(), FRONT)

    def decode_error(
        self, status: int | None, body: object, headers: Mapping[str, str] | None = None
    ) -> ProviderError:
        """The error in a body; in mid-stream, without a status, in an event. Never raises."""
        return decode_error(status, body, headers)

    def encode_error(self, error: DragomanError) -> tuple[int, dict[str, Any]]:
        """The status and the body to answer with for an error."""
        return encode_error(error)

    def check(
        self,
        body: object,
        path: str | None = None,
        headers: Mapping[str, str] | None = None,
        target: Target | None = None,
    ) -> list[Violation]:
        """What the target would refuse in a request; the vendor's own, if none is given."""
        del path, headers
        return check(body, target)


DIALECT = OpenAIResponses()
