"""The dialect: its functions in one object."""

from __future__ import annotations

from dragoman.wire.codec import Codec, Functions
from dragoman.wire.openai_responses.dialect import DESCRIPTION, STATE_FIELDS, TARGET
from dragoman.wire.openai_responses.request import decode_request, encode_request
from dragoman.wire.openai_responses.request_repairs import STEPS
from dragoman.wire.openai_responses.response import (
    DETAILS,
    decode_error,
    decode_response,
    encode_error,
    encode_response,
)
from dragoman.wire.openai_responses.rules import RULEBOOK
from dragoman.wire.openai_responses.stream import StreamDecoder
from dragoman.wire.openai_responses.stream_encoder import StreamEncoder
from dragoman.wire.openai_strict_schemas import OPENAI, OPENAI_STRICT

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
        decode_error=decode_error,
        encode_error=encode_error,
        rulebook=RULEBOOK,
        steps=STEPS,
        front_form="dragoman.wire.openai_responses.response_front",
        lane="dragoman.wire.openai_responses.lane",
    ),
    state_fields=STATE_FIELDS,
    usage_details=DETAILS,
    services="dragoman.wire.openai_responses.services",
    schema_profiles=(OPENAI, OPENAI_STRICT),
)
