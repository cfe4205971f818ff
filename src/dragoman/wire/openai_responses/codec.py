"""The `openai-responses` codec: the functions of this dialect in one object."""

from __future__ import annotations

from dragoman.wire.codec import Codec, Functions, on_use
from dragoman.wire.openai_responses.dialect import DESCRIPTION, STATE_FIELDS, TARGET
from dragoman.wire.openai_responses.request import decode_request, encode_request
from dragoman.wire.openai_responses.request_repairs import STEPS
from dragoman.wire.openai_responses.settings import PLACES
from dragoman.wire.openai_responses.tables_built_in import PARTS
from dragoman.wire.openai_strict_schemas import OPENAI, OPENAI_STRICT

_HOME = "dragoman.wire.openai_responses"
DIALECT = Codec(
    DESCRIPTION,
    TARGET,
    Functions(
        decode_request=decode_request,
        encode_request=encode_request,
        decode_response=on_use(f"{_HOME}.response", "decode_response"),
        encode_response=on_use(f"{_HOME}.response", "encode_response"),
        stream_decoder=on_use(f"{_HOME}.stream", "StreamDecoder"),
        stream_encoder=on_use(f"{_HOME}.stream_encoder", "StreamEncoder"),
        decode_error=on_use(f"{_HOME}.response", "decode_error"),
        encode_error=on_use(f"{_HOME}.response", "encode_error"),
        rulebook=f"{_HOME}.rules",
        steps=STEPS,
        places=PLACES,
        further_fields=frozenset({"background", "generate", "stream_id", "include"}),
        unsupported=PARTS.unsupported,
        front_form=f"{_HOME}.response_front",
        plain=f"{_HOME}.plain",
        lane=f"{_HOME}.lane",
    ),
    state_fields=STATE_FIELDS,
    usage_details=f"{_HOME}.response",
    services=f"{_HOME}.services",
    schema_profiles=(OPENAI, OPENAI_STRICT),
)
