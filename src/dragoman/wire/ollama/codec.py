"""The dialect: its functions in one object."""

from __future__ import annotations

from dragoman.wire.codec import Codec, Functions
from dragoman.wire.ollama.dialect import DESCRIPTION, TARGET
from dragoman.wire.ollama.request import decode_request, encode_request
from dragoman.wire.ollama.request_repairs import STEPS
from dragoman.wire.ollama.response import decode_response, encode_error, encode_response
from dragoman.wire.ollama.rules import RULEBOOK
from dragoman.wire.ollama.stream import StreamDecoder, StreamEncoder
from dragoman.wire.ollama.tools import OLLAMA

DIALECT = Codec(
    DESCRIPTION,
    TARGET,
    Functions(
        decode_request=lambda wire, _path: decode_request(wire),
        encode_request=encode_request,
        decode_response=decode_response,
        encode_response=encode_response,
        stream_decoder=StreamDecoder,
        stream_encoder=StreamEncoder,
        encode_error=encode_error,
        rulebook=RULEBOOK,
        steps=STEPS,
        front_form="dragoman.wire.ollama.response_front",
        lane="dragoman.wire.ollama.lane",
    ),
    missing_counts=("cache_read", "cache_write", "thinking"),
    services="dragoman.wire.ollama.services",
    schema_profiles=(OLLAMA,),
)
