"""Why the model stopped."""

from __future__ import annotations

from typing import Any

from dragoman.model.usage import FinishReason
from dragoman.wire.openai_chat.exchange import Outgoing

_STOP, _LENGTH, _CALLS = FinishReason.STOP, FinishReason.LENGTH, FinishReason.TOOL_CALLS
_FILTER, _ERROR, _OTHER = FinishReason.CONTENT_FILTER, FinishReason.ERROR, FinishReason.OTHER

_FINISHES = {
    "stop": _STOP,
    "length": _LENGTH,
    "tool_calls": _CALLS,
    "function_call": _CALLS,
    "content_filter": _FILTER,
    # Other servers' words: Together; Mistral; Z.ai; DeepSeek; OpenRouter.
    "eos": _STOP,
    "end_turn": _STOP,
    "max_tokens": _LENGTH,
    "model_length": FinishReason.CONTEXT_FULL,
    "sensitive": _FILTER,
    "network_error": _ERROR,
    "insufficient_system_resource": _ERROR,
    "error": _ERROR,
}
_WORDS = {
    _STOP: "stop",
    _LENGTH: "length",
    _CALLS: "tool_calls",
    _FILTER: "content_filter",
    FinishReason.CONTEXT_FULL: "length",
    FinishReason.REFUSAL: "content_filter",
}


def decode_finish(raw: Any) -> FinishReason | None:
    """The reason behind a `finish_reason`."""
    if not isinstance(raw, str) or not raw:
        return None
    return _FINISHES.get(raw, _OTHER)


def encode_finish(
    finish: FinishReason | None,
    raw: str | None,
    out: Outgoing,
    path: str,
    *,
    is_ours: bool,
    has_calls: bool,
) -> str | None:
    """The `finish_reason`: the wire's own word where it still holds."""
    if is_ours and raw is not None and decode_finish(raw) is finish:
        return raw
    if finish is None:
        return None
    if finish is _STOP and has_calls:
        return "tool_calls"  # clients run tools on this word only (W11)
    if finish not in _WORDS:
        out.lose(f"{path}.finish", "this reason has no word here")
    return _WORDS.get(finish, "stop")
