"""OpenAI's token counting endpoint of the Responses API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.wire.openai_services import EMBEDDINGS, MODELS, UPLOADS
from dragoman.wire.services import Counted, CountFormat, Services, number_at

_NAME = "openai-responses"
# Fields that `responses/input_tokens` accepts; it refuses all others.
_COUNTED = (
    "model", "input", "instructions", "tools", "tool_choice", "text", "reasoning",
    "previous_response_id", "conversation", "parallel_tool_calls", "truncation",
)  # fmt: skip


def encode_count(body: Mapping[str, Any], _model: str | None) -> dict[str, Any]:
    """The countable part of a request body."""
    return {key: body[key] for key in _COUNTED if key in body}


def decode_count_request(wire: Mapping[str, Any], _path: str | None) -> Counted:
    """Decode a token counting request, ignoring settings that don't count."""
    return Counted(wire)


def decode_count(wire: Any) -> int:
    """Decode the number of prompt tokens."""
    return number_at(wire, "input_tokens", _NAME)


def encode_count_response(tokens: int) -> dict[str, Any]:
    """Encode the number of prompt tokens."""
    return {"object": "response.input_tokens", "input_tokens": tokens}


SERVICES = Services(
    embeddings=EMBEDDINGS,
    models=MODELS,
    counts=CountFormat(encode_count, decode_count, decode_count_request, encode_count_response),
    uploads=UPLOADS,
)
