"""OpenAI's Responses API: a conversation is a flat list of items (messages, reasoning, calls)."""

from __future__ import annotations

from dragoman.model.requests import Request
from dragoman.wire.codec import Codec, Functions
from dragoman.wire.encoded import Encoded
from dragoman.wire.losses import Repair
from dragoman.wire.openai_responses import request as requests
from dragoman.wire.openai_responses import response as responses
from dragoman.wire.openai_responses.errors import decode_error, encode_error
from dragoman.wire.openai_responses.front import FRONT
from dragoman.wire.openai_responses.rules import RULEBOOK
from dragoman.wire.openai_responses.stream_decoder import StreamDecoder
from dragoman.wire.openai_responses.stream_encoder import StreamEncoder
from dragoman.wire.openai_responses.target import TARGET
from dragoman.wire.target import Target

__all__ = ["DIALECT", "OpenAIResponses"]


class OpenAIResponses(Codec):
    """The dialect, with an opening where nothing of a conversation is left to be sent."""

    def encode_request(
        self,
        request: Request,
        target: Target | None = None,
        *,
        strict: bool = False,
        repair: bool = True,
    ) -> Encoded:
        """The body to send for a request."""
        encoded = super().encode_request(request, target, strict=strict, repair=repair)
        if repair and requests.begin(encoded.body, request):
            reason = "an opening: nothing of the conversation could be sent"
            encoded.repairs += (Repair("messages", "W47", "added", reason),)
        return encoded


DIALECT = OpenAIResponses(
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
    system_field="instructions",
    front=FRONT,
)
