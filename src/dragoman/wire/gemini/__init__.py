"""Google Gemini: `generateContent`, of the Gemini API and of Vertex AI."""

from __future__ import annotations

from dragoman.wire.codec import Codec, Functions
from dragoman.wire.context import Context
from dragoman.wire.gemini.errors import decode_error, encode_error
from dragoman.wire.gemini.front import FRONT
from dragoman.wire.gemini.request import decode_request, encode_fitted
from dragoman.wire.gemini.response import decode_response, encode_response
from dragoman.wire.gemini.rules import RULEBOOK
from dragoman.wire.gemini.stream_decoder import StreamDecoder
from dragoman.wire.gemini.stream_encoder import StreamEncoder
from dragoman.wire.gemini.stream_frames import Form
from dragoman.wire.gemini.target import TARGET
from dragoman.wire.streams import StreamEncoder as AnyEncoder

__all__ = ["DIALECT", "Gemini"]


class Gemini(Codec):
    """The dialect, with both forms of its streams."""

    def stream_encoder(
        self,
        context: Context | None = None,  # noqa: ARG002 - the form is in the address, not in the request
        *,
        form: Form = "sse",
    ) -> AnyEncoder:
        """Writes a stream, of events or an array."""
        return self._sealing(StreamEncoder(form=form))


DIALECT = Gemini(
    TARGET,
    Functions(
        decode_request=decode_request,
        encode_request=encode_fitted,
        decode_response=decode_response,
        encode_response=encode_response,
        stream_decoder=StreamDecoder,
        stream_encoder=StreamEncoder,
        decode_error=decode_error,
        encode_error=encode_error,
        rulebook=RULEBOOK,
    ),
    messages_field="contents",
    answer_field="candidates",
    system_field="systemInstruction",
    front=FRONT,
    untold_counts=("cache_write",),
)
