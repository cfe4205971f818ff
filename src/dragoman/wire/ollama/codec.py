"""The `ollama` codec: the functions of this dialect in one object."""

from __future__ import annotations

from dragoman.wire.codec import Codec, Functions, on_use
from dragoman.wire.ollama.dialect import DESCRIPTION, TARGET
from dragoman.wire.ollama.request import decode_request, encode_request
from dragoman.wire.ollama.request_repairs import STEPS
from dragoman.wire.ollama.settings import PLACES
from dragoman.wire.ollama.tools import OLLAMA

_HOME = "dragoman.wire.ollama"
DIALECT = Codec(
    DESCRIPTION,
    TARGET,
    Functions(
        decode_request=decode_request,
        encode_request=encode_request,
        decode_response=on_use(f"{_HOME}.response", "decode_response"),
        encode_response=on_use(f"{_HOME}.response", "encode_response"),
        stream_decoder=on_use(f"{_HOME}.stream", "StreamDecoder"),
        stream_encoder=on_use(f"{_HOME}.stream", "StreamEncoder"),
        encode_error=on_use(f"{_HOME}.response", "encode_error"),
        rulebook=f"{_HOME}.rules",
        steps=STEPS,
        places=PLACES,
        further_fields=frozenset(
            {
                "prompt",
                "system",
                "template",
                "raw",
                "context",
                "suffix",
                "images",
                "input",
                "dimensions",
                "truncate",
            }
        ),
        front_form=f"{_HOME}.response_front",
        plain=f"{_HOME}.plain",
        lane=f"{_HOME}.lane",
    ),
    missing_counts=("cache_read", "cache_write", "thinking"),
    services=f"{_HOME}.services",
    schema_profiles=(OLLAMA,),
)
