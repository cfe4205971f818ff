"""Ollama's own API: `/api/chat`. Its `/v1` speaks OpenAI Chat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.errors import DragomanError, ProviderError
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.wire import streams
from dragoman.wire.context import NOTHING, Context
from dragoman.wire.dialect import Body
from dragoman.wire.encoded import Encoded
from dragoman.wire.fitting import encoded_for
from dragoman.wire.ollama.errors import decode_error, encode_error
from dragoman.wire.ollama.request import decode_request, encode_request
from dragoman.wire.ollama.response import decode_response, encode_response
from dragoman.wire.ollama.rules import check
from dragoman.wire.ollama.spelling import NAME
from dragoman.wire.ollama.stream_decoder import StreamDecoder
from dragoman.wire.ollama.stream_encoder import StreamEncoder
from dragoman.wire.ollama.target import TARGET
from dragoman.wire.restoring import restoring
from dragoman.wire.target import Target
from dragoman.wire.violations import Violation

__all__ = ["DIALECT", "Ollama"]


class Ollama:
    """The dialect."""

    name = NAME
    messages_field = "messages"
    system_field = None
    target = TARGET

    def decode_request(
        self, body: Body, *, path: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Request:
        """The request in a body; path and headers say nothing that it does not."""
        del path, headers
        return decode_request(body)

    def encode_request(
        self, request: Request, target: Target | None = None, *, strict: bool = False
    ) -> Encoded:
        """The body to send for a request."""
        return encoded_for(request, target or TARGET, encode_request, strict=strict)

    def decode_response(self, body: Body, context: Context = NOTHING) -> Response:
        """The response in a body."""
        return context.restored(decode_response(body))

    def encode_response(self, response: Response) -> Encoded:
        """The body to answer with for a response."""
        return encode_response(response)

    def stream_decoder(self, context: Context = NOTHING) -> streams.StreamDecoder:
        """Reads a stream."""
        return restoring(StreamDecoder(), context)

    def stream_encoder(self) -> StreamEncoder:
        """Writes a stream."""
        return StreamEncoder()

    def decode_error(
        self, status: int | None, body: object, headers: Mapping[str, str] | None = None
    ) -> ProviderError:
        """The error in a body; in mid-stream, without a status, in a line. Never raises."""
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


DIALECT = Ollama()
