"""OpenAI's Responses API: a conversation is a flat list of items (messages, reasoning, calls)."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.errors import InvalidInputError, WireError
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.wire.context import NOTHING, Context
from dragoman.wire.dialect import Body
from dragoman.wire.encoded import Encoded
from dragoman.wire.fitting import encoded_for
from dragoman.wire.openai_responses import request as requests
from dragoman.wire.openai_responses import response as responses
from dragoman.wire.openai_responses.forms import NAME
from dragoman.wire.openai_responses.target import TARGET
from dragoman.wire.overlay import parsed
from dragoman.wire.target import Target

__all__ = ["DIALECT", "OpenAIResponses"]


class OpenAIResponses:
    """The dialect, in both directions."""

    name = NAME
    messages_field = "input"
    system_field = "instructions"

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
        return encoded_for(request, target or TARGET, requests.encode, strict=strict)

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
        return responses.encode(response)


DIALECT = OpenAIResponses()
