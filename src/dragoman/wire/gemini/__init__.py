"""Google Gemini: `generateContent`, of the Gemini API and of Vertex AI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from dragoman.errors import InvalidInputError, WireError
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.wire.context import NOTHING, Context
from dragoman.wire.dialect import Body
from dragoman.wire.encoded import Encoded
from dragoman.wire.fitting import encoded_for
from dragoman.wire.gemini.request import decode_request, encode_fitted
from dragoman.wire.gemini.response import decode_response, encode_response
from dragoman.wire.gemini.target import TARGET
from dragoman.wire.gemini.trace import NAME
from dragoman.wire.target import Target

__all__ = ["DIALECT"]

T = TypeVar("T")


class Gemini:
    """The wire format, in both directions."""

    name = NAME
    messages_field = "contents"
    system_field = "systemInstruction"

    def decode_request(
        self, body: Body, *, path: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Request:
        """The request in a body and its path."""
        del headers  # they say nothing about the request
        return _read(lambda: decode_request(body, path))

    def encode_request(
        self, request: Request, target: Target | None = None, *, strict: bool = False
    ) -> Encoded:
        """The body and path for a request."""
        return encoded_for(request, target or TARGET, encode_fitted, strict=strict)

    def decode_response(self, body: Body, context: Context = NOTHING) -> Response:
        """The response in a body."""
        return context.restored(_read(lambda: decode_response(body)))

    def encode_response(self, response: Response) -> Encoded:
        """The body for a response."""
        return encode_response(response)


def _read(decode: Callable[[], T]) -> T:
    """What a decoder reads; a value that no message can hold is the peer's fault."""
    try:
        return decode()
    except InvalidInputError as error:
        problem = str(error)
    except RecursionError:
        problem = "the JSON nests too deeply"
    raise WireError(problem, dialect=NAME)


DIALECT = Gemini()
