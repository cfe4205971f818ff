"""The dialect, assembled from its functions."""

from __future__ import annotations

from dragoman.wire.codec import Codec, Functions
from dragoman_courier.description import DESCRIPTION, SCHEMAS, TARGET
from dragoman_courier.request import decode_request, encode_request
from dragoman_courier.response import decode_response, encode_error, encode_response
from dragoman_courier.rules import RULEBOOK, STEPS
from dragoman_courier.stream import StreamDecoder, StreamEncoder

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
    ),
    schema_profiles=(SCHEMAS,),
)
