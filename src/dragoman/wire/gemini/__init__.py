"""Google Gemini: `generateContent`, of the Gemini API and of Vertex AI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from dragoman.errors import DragomanError, InvalidInputError, ProviderError, WireError
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.wire import streams
from dragoman.wire.context import NOTHING, Context
from dragoman.wire.dialect import Body
from dragoman.wire.encoded import Encoded
from dragoman.wire.fitting import encoded_for
from dragoman.wire.fronts import encoded_behind
from dragoman.wire.gemini.errors import decode_error, encode_error
from dragoman.wire.gemini.front import FRONT
from dragoman.wire.gemini.request import decode_request, encode_fitted
from dragoman.wire.gemini.response import decode_response, encode_response
from dragoman.wire.gemini.rules import check
from dragoman.wire.gemini.stream_decoder import StreamDecoder
from dragoman.wire.gemini.stream_encoder import StreamEncoder
from dragoman.wire.gemini.stream_frames import Form
from dragoman.wire.gemini.target import TARGET
from dragoman.wire.gemini.trace import NAME
from dragoman.wire.restoring import restoring
from dragoman.wire.sealing import SealingEncoder
from dragoman.wire.target import Target
from dragoman.wire.violations import Violation

__all__ = ["DIALECT"]

T = TypeVar("T")


class Gemini:
    """The wire format, in both directions."""

    name = NAME
    messages_field = "contents"
    system_field = "systemInstruction"
    target = TARGET

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
        return encoded_behind(FRONT, response, encode_response)

    def stream_decoder(self, context: Context = NOTHING) -> streams.StreamDecoder:
        """Reads a stream, of events or an array."""
        return restoring(StreamDecoder(), context)

    def stream_encoder(self, *, form: Form = "sse") -> streams.StreamEncoder:
        """Writes a stream, of events or an array."""
        return SealingEncoder(StreamEncoder(form=form), FRONT)

    def decode_error(
        self, status: int | None, body: object, headers: Mapping[str, str] | None = None
    ) -> ProviderError:
        """The error in a body; in mid-stream, without a status, in a chunk. Never raises."""
        return decode_error(status, body, headers)

    def encode_error(self, error: DragomanError) -> tuple[int, dict[str, Any]]:
        """The status and the body to answer with for an error."""
        return encode_error(error)

    def check(
        self,
        body: Body,
        path: str | None = None,
        headers: Mapping[str, str] | None = None,
        target: Target | None = None,
    ) -> list[Violation]:
        """What the target would refuse in a request, rule by rule."""
        return check(body, path, headers, target)


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
