"""What LangChain tells about an answer: tokens, why it ended, which model gave it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Origin
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.overlay import difference, laid_over
from dragoman.wire.peers.providers import origin_at, provider_of

NAME = "langchain"
_FINISH_FIELDS = ("finish_reason", "stop_reason", "done_reason")
_FINISHES = {
    "stop": FinishReason.STOP,
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "completed": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "max_output_tokens": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALLS,
    "tool_use": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.CONTENT_FILTER,
    "safety": FinishReason.CONTENT_FILTER,
    "prohibited_content": FinishReason.CONTENT_FILTER,
    "refusal": FinishReason.REFUSAL,
    "pause_turn": FinishReason.PAUSE,
    "model_context_window_exceeded": FinishReason.CONTEXT_FULL,
    "malformed_function_call": FinishReason.MALFORMED_CALL,
}
_PROVIDERS = {"google": "google_genai", "vertex": "google_vertexai", "mistral": "mistralai"}


# --- tokens


def decode_usage(wire: Any) -> Usage | None:
    """The counts of `usage_metadata`, whose totals include what was cached and thought."""
    if not isinstance(wire, Mapping):
        return None
    total_input, total_output = _count(wire, "input_tokens"), _count(wire, "output_tokens")
    read, written = (_detail(wire, "input", key) for key in ("cache_read", "cache_creation"))
    thought = min(_detail(wire, "output", "reasoning"), total_output)
    read = min(read, total_input)
    written = min(written, total_input - read)
    total = wire.get("total_tokens")
    usage = Usage(
        total_input - read - written,
        total_output - thought,
        read,
        written,
        thought,
        total if type(total) is int else None,
    )
    extras = difference(wire, encode_usage(usage), NAME)
    return usage.replace(extras=extras) if extras else usage


def _count(wire: Mapping[str, Any], key: str) -> int:
    count = wire.get(key)
    return count if type(count) is int and count > 0 else 0


def _detail(wire: Mapping[str, Any], side: str, key: str) -> int:
    details = wire.get(f"{side}_token_details")
    return _count(details, key) if isinstance(details, Mapping) else 0


def encode_usage(usage: Usage) -> dict[str, Any]:
    """The counts as `usage_metadata`."""
    wire: dict[str, Any] = {
        "input_tokens": usage.total_input,
        "output_tokens": usage.total_output,
        "total_tokens": usage.total,
    }
    details = {"cache_read": usage.cache_read, "cache_creation": usage.cache_write}
    if any(details.values()):
        wire["input_token_details"] = {key: count for key, count in details.items() if count}
    if usage.thinking:
        wire["output_token_details"] = {"reasoning": usage.thinking}
    return wire if usage.extras is EMPTY else laid_over(wire, usage.extras, NAME)


# --- why it ended


def decode_finish(metadata: Mapping[str, Any]) -> FinishReason | None:
    """Why the answer ended, in whichever field and word the integration has it."""
    for field in _FINISH_FIELDS:
        word = metadata.get(field)
        if isinstance(word, str):
            return _FINISHES.get(word.lower(), FinishReason.OTHER)
    return None


def with_finish(metadata: dict[str, Any], finish: FinishReason | None) -> dict[str, Any]:
    """The metadata with the reason, where they don't say it already."""
    if finish is decode_finish(metadata):
        return metadata
    others = {key: item for key, item in metadata.items() if key not in _FINISH_FIELDS}
    return others if finish is None else {**others, "finish_reason": finish.value}


# --- who answered


def decode_origin(metadata: Mapping[str, Any], *, is_responses: bool) -> Origin | None:
    """The model that answered, where its provider is known."""
    model = metadata.get("model_name", metadata.get("model"))
    provider = metadata.get("model_provider")
    return origin_at(
        provider, model=model, response_id=metadata.get("id"), is_responses=is_responses
    )


def with_origin(metadata: dict[str, Any], origin: Origin | None) -> dict[str, Any]:
    """The metadata with the model and its provider, where they don't say them already."""
    provider = provider_of(origin)
    if origin is None or provider is None or "model_provider" in metadata:
        return metadata
    named = {"model_provider": _PROVIDERS.get(provider, provider)}
    if origin.model is not None and metadata.keys().isdisjoint({"model_name", "model"}):
        named["model_name"] = origin.model
    if origin.response_id is not None and "id" not in metadata:
        named["id"] = origin.response_id
    return {**metadata, **named}
