"""Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dragoman.errors import DragomanError, InvalidInputError, ProviderError, WireError
from dragoman.model.frozen import EMPTY
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.wire import streams
from dragoman.wire.anthropic.context import NAME
from dragoman.wire.anthropic.errors import decode_error, encode_error
from dragoman.wire.anthropic.front import FRONT
from dragoman.wire.anthropic.request import decode_request, encode_request
from dragoman.wire.anthropic.response import decode_response, encode_response
from dragoman.wire.anthropic.rules import check
from dragoman.wire.anthropic.stream_decoder import StreamDecoder
from dragoman.wire.anthropic.stream_encoder import StreamEncoder
from dragoman.wire.anthropic.target import TARGET
from dragoman.wire.context import NOTHING, Context
from dragoman.wire.dialect import Body
from dragoman.wire.encoded import Encoded
from dragoman.wire.fitting import encoded_for
from dragoman.wire.fronts import encoded_behind
from dragoman.wire.overlay import parsed
from dragoman.wire.restoring import restoring
from dragoman.wire.sealing import SealingEncoder
from dragoman.wire.target import Target
from dragoman.wire.violations import Violation

__all__ = ["DIALECT"]

T = TypeVar("T")
BETA = "anthropic-beta"
HEADERS = f"{NAME} headers"
"""Where a request keeps the headers that it came with."""


class _Anthropic:
    """The dialect; see `dragoman.wire.dialect.Dialect`."""

    name = NAME
    messages_field = "messages"
    system_field = "system"
    target = TARGET

    def decode_request(
        self,
        body: Body,
        *,
        path: str | None = None,  # noqa: ARG002 - the model is in the body
        headers: Mapping[str, str] | None = None,
    ) -> Request:
        """The request in a body; what is tried out with it stands in a header (G9)."""
        request = _read(decode_request, body)
        tried = [value for name, value in (headers or {}).items() if name.lower() == BETA]
        if not tried:
            return request
        return request.replace(extras={**request.extras, HEADERS: {BETA: ",".join(tried)}})

    def encode_request(
        self, request: Request, target: Target | None = None, *, strict: bool = False
    ) -> Encoded:
        """The body to send for a request, and the header that it came with."""
        encoded = encoded_for(request, target or TARGET, encode_request, strict=strict)
        encoded.headers = request.extras.get(HEADERS, EMPTY)
        return encoded

    def decode_response(self, body: Body, context: Context = NOTHING) -> Response:
        """The response in a body."""
        return context.restored(_read(decode_response, body))

    def encode_response(self, response: Response) -> Encoded:
        """The body to answer with for a response."""
        return encoded_behind(FRONT, response, encode_response)

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
        return check(body, path, headers, target)


def _read(decode: Callable[[dict[str, Any]], T], body: Body) -> T:
    wire = parsed(body, NAME)
    try:
        return decode(wire if isinstance(wire, dict) else dict(wire))
    except InvalidInputError as error:  # nested too deeply, or not JSON at all
        problem = str(error)
    raise WireError(problem, dialect=NAME, path="$")


DIALECT = _Anthropic()
