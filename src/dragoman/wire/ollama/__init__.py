"""Ollama's own API: `/api/chat`. Its `/v1` speaks OpenAI Chat."""

from __future__ import annotations

from dragoman.wire.codec import Codec, Functions
from dragoman.wire.ollama.errors import decode_error, encode_error
from dragoman.wire.ollama.request import decode_request, encode_request
from dragoman.wire.ollama.response import decode_response, encode_response
from dragoman.wire.ollama.rules import RULEBOOK
from dragoman.wire.ollama.stream_decoder import StreamDecoder
from dragoman.wire.ollama.stream_encoder import StreamEncoder
from dragoman.wire.ollama.target import TARGET

__all__ = ["DIALECT"]

DIALECT = Codec(
    TARGET,
    Functions(
        decode_request=lambda wire, _path: decode_request(wire),
        encode_request=encode_request,
        decode_response=decode_response,
        encode_response=encode_response,
        stream_decoder=StreamDecoder,
        stream_encoder=StreamEncoder,
        decode_error=decode_error,
        encode_error=encode_error,
        rulebook=RULEBOOK,
    ),
    messages_field="messages",
    untold_counts=("cache_read", "cache_write", "thinking"),
    answer_field="message",
)
