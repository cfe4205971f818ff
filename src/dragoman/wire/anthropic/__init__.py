"""Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dragoman.errors import InvalidInputError, WireError
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.wire.anthropic.context import NAME
from dragoman.wire.anthropic.request import decode_request, encode_request
from dragoman.wire.anthropic.response import decode_response, encode_response
from dragoman.wire.anthropic.target import TARGET
from dragoman.wire.context import NOTHING, Context
from dragoman.wire.dialect import Body
from dragoman.wire.encoded import Encoded
from dragoman.wire.fitting import encoded_for
from dragoman.wire.overlay import parsed
from dragoman.wire.target import Target

__all__ = ["DIALECT"]

T = TypeVar("T")


class _Anthropic:
    """The dialect; see `dragoman.wire.dialect.Dialect`."""

    name = NAME

    def decode_request(
        self,
        body: Body,
        *,
        path: str | None = None,  # noqa: ARG002 - the model is in the body
        headers: Mapping[str, str] | None = None,  # noqa: ARG002 - nothing of the request is there
    ) -> Request:
        """The request in a body."""
        return _read(decode_request, body)

    def encode_request(
        self, request: Request, target: Target | None = None, *, strict: bool = False
    ) -> Encoded:
        """The body to send for a request."""
        return encoded_for(request, target or TARGET, encode_request, strict=strict)

    def decode_response(self, body: Body, context: Context = NOTHING) -> Response:
        """The response in a body."""
        return context.restored(_read(decode_response, body))

    def encode_response(self, response: Response) -> Encoded:
        """The body to answer with for a response."""
        return encode_response(response)


def _read(decode: Callable[[dict[str, Any]], T], body: Body) -> T:
    wire = parsed(body, NAME)
    try:
        return decode(wire if isinstance(wire, dict) else dict(wire))
    except InvalidInputError as error:  # nested too deeply, or not JSON at all
        problem = str(error)
    raise WireError(problem, dialect=NAME, path="$")


DIALECT = _Anthropic()
