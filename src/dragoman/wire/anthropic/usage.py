"""Token counts and reasons to stop."""

from __future__ import annotations

from typing import Any

from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.anthropic.context import NAME, Block
from dragoman.wire.overlay import difference, laid_over

_FINISH: dict[str, FinishReason] = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "max_tokens": FinishReason.LENGTH,
    "tool_use": FinishReason.TOOL_CALLS,
    "pause_turn": FinishReason.PAUSE,
    "compaction": FinishReason.PAUSE,  # as pause_turn: send it back and go on
    "refusal": FinishReason.REFUSAL,
    "model_context_window_exceeded": FinishReason.CONTEXT_FULL,
}
_OTHER = FinishReason.OTHER

_STOP_REASON: dict[FinishReason, str] = {
    FinishReason.LENGTH: "max_tokens",
    FinishReason.TOOL_CALLS: "tool_use",
    FinishReason.PAUSE: "pause_turn",
    FinishReason.REFUSAL: "refusal",
    FinishReason.CONTENT_FILTER: "refusal",
    FinishReason.CONTEXT_FULL: "model_context_window_exceeded",
    FinishReason.MALFORMED_CALL: "max_tokens",  # the one word here for a call not to be run (I7)
}


def decode_finish(stop_reason: Any) -> FinishReason | None:
    """Why the model stopped, W70."""
    return _FINISH.get(stop_reason, _OTHER) if type(stop_reason) is str else None


def is_failure(finish: FinishReason | None) -> bool:
    """Whether an answer failed, which no word of this wire says."""
    return finish is FinishReason.ERROR or finish is FinishReason.CANCELLED


def encode_finish(finish: FinishReason) -> str:
    """The nearest word this wire has for why a model stopped."""
    return _STOP_REASON.get(finish, "end_turn")


def decode_usage(wire: Any) -> Usage | None:
    """Token counts; None where the two that must be there are not."""
    if not isinstance(wire, dict):
        return None
    read, written = wire.get("input_tokens"), wire.get("output_tokens")
    if type(read) is not int or type(written) is not int:
        return None
    thinking = _thinking_tokens(wire.get("output_tokens_details"), written)
    usage = Usage(
        input=read,
        output=written - thinking,
        cache_read=_count(wire.get("cache_read_input_tokens")),
        cache_write=_count(wire.get("cache_creation_input_tokens")),
        thinking=thinking,
    )
    extras = difference(wire, _usage(usage), NAME)
    return usage.replace(extras=extras) if extras else usage


def encode_usage(usage: Usage) -> Block:
    """Token counts as this wire has them: cached input apart, thinking within the output (W68)."""
    return laid_over(_usage(usage), usage.extras, NAME)


def _usage(usage: Usage) -> Block:
    wire: Block = {"input_tokens": usage.input, "output_tokens": usage.total_output}
    if usage.cache_write:
        wire["cache_creation_input_tokens"] = usage.cache_write
    if usage.cache_read:
        wire["cache_read_input_tokens"] = usage.cache_read
    if usage.thinking:
        wire["output_tokens_details"] = {"thinking_tokens": usage.thinking}
    return wire


def _count(value: Any) -> int:
    return value if type(value) is int else 0


def _thinking_tokens(details: Any, written: int) -> int:
    """How much of the output was thinking; 0 where the wire does not say, or says nonsense."""
    thinking = _count(details.get("thinking_tokens")) if isinstance(details, dict) else 0
    return thinking if 0 <= thinking <= written else 0
