"""OpenAI's Responses API: a conversation is a flat list of items (messages, reasoning, calls)."""

from __future__ import annotations

from dragoman.wire.codec import Codec, Functions
from dragoman.wire.openai_responses import request as requests
from dragoman.wire.openai_responses import response as responses
from dragoman.wire.openai_responses.errors import decode_error, encode_error
from dragoman.wire.openai_responses.front import FRONT
from dragoman.wire.openai_responses.rules import RULEBOOK
from dragoman.wire.openai_responses.stream_decoder import StreamDecoder
from dragoman.wire.openai_responses.stream_encoder import StreamEncoder
from dragoman.wire.openai_responses.target import TARGET

__all__ = ["DIALECT"]


DIALECT = Codec(
    TARGET,
    Functions(
        decode_request=lambda wire, _path: requests.decode(wire),
        encode_request=requests.encode,
        decode_response=responses.decode,
        encode_response=responses.encode,
        stream_decoder=StreamDecoder,
        stream_encoder=StreamEncoder,
        decode_error=decode_error,
        encode_error=encode_error,
        rulebook=RULEBOOK,
    ),
    messages_field="input",
    answer_field="output",
    system_field="instructions",
    front=FRONT,
)
