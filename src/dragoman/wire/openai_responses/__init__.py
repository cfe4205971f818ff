"""OpenAI's Responses API: a conversation is a flat list of items (messages, reasoning, calls)."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.errors import InvalidInputError, WireError
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.wire.dialect import Body
from dragoman.wire.encoded import Encoded
from dragoman.wire.openai_responses import request as requests
from dragoman.wire.openai_responses import response as responses
from dragoman.wire.openai_responses.forms import NAME
from dragoman.wire.overlay import parsed

__all__ = ["DIALECT", "OpenAIResponses"]


class OpenAIResponses:
    """The dialect, in both directions."""

    name = NAME

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

    def encode_request(self, request: Request) -> Encoded:
        """The body to send for a request."""
        return requests.encode(request)

    def decode_response(self, body: Body) -> Response:
        """The response in a body."""
        wire = parsed(body, NAME)
        try:
            return responses.decode(wire)
        except InvalidInputError as error:
            problem = str(error)
        raise WireError(problem, dialect=NAME, path="$")

    def encode_response(self, response: Response) -> Encoded:
        """The body to answer with for a response."""
        return responses.encode(response)


DIALECT = OpenAIResponses()
