"""What OpenAI has besides Responses: its prompts can be counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.wire.openai_services import EMBEDDINGS, MODELS, UPLOADS
from dragoman.wire.services import Counted, CountFormat, Services, number_at

_NAME = "openai-responses"
# What `responses/input_tokens` takes; it refuses the rest.
_COUNTED = (
    "model", "input", "instructions", "tools", "tool_choice", "text", "reasoning",
    "previous_response_id", "conversation", "parallel_tool_calls", "truncation",
)  # fmt: skip


def encode_count(body: Mapping[str, Any], _model: str | None) -> dict[str, Any]:
    """What is counted of a request."""
    return {key: body[key] for key in _COUNTED if key in body}


def decode_count_request(wire: Mapping[str, Any], _path: str | None) -> Counted:
    """A request without the settings that don't count."""
    return Counted(wire)


def decode_count(wire: Any) -> int:
    """The tokens of the prompt."""
    return number_at(wire, "input_tokens", _NAME)


def encode_count_response(tokens: int) -> dict[str, Any]:
    """The same, for a client."""
    return {"object": "response.input_tokens", "input_tokens": tokens}


SERVICES = Services(
    embeddings=EMBEDDINGS,
    models=MODELS,
    counts=CountFormat(encode_count, decode_count, decode_count_request, encode_count_response),
    uploads=UPLOADS,
)
