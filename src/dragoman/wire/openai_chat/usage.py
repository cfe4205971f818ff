"""Token counts: the wire's overlap, the model's do not (W19)."""

from __future__ import annotations

from typing import Any

from dragoman.model.frozen import EMPTY
from dragoman.model.usage import Usage
from dragoman.wire import overlay
from dragoman.wire.openai_chat.spelling import (
    NAME,
    absent,
    extras_of,
    is_integer,
    is_object,
    without_absent,
    words_of,
)

_PROMPT, _COMPLETION = "prompt_tokens_details", "completion_tokens_details"
# Where other servers count what they read from a cache: DeepSeek, Mistral, Kimi.
_CACHED = ("prompt_cache_hit_tokens", "num_cached_tokens", "cached_tokens")


def decode_usage(wire: dict[str, Any]) -> Usage:
    """The counts in `usage`."""
    prompt, completion = _count(wire, "prompt_tokens"), _count(wire, "completion_tokens")
    read = _count(wire.get(_PROMPT), "cached_tokens") or max(_count(wire, key) for key in _CACHED)
    write = _count(wire.get(_PROMPT), "cache_write_tokens")
    thinking = _count(wire.get(_COMPLETION), "reasoning_tokens") or _count(wire, "reasoning_tokens")
    total = wire.get("total_tokens")
    # xAI counts thinking beside the answer, not in it; its total tells.
    is_apart = thinking > completion or total == prompt + completion + thinking
    counts = Usage(
        input=max(prompt - read - write, 0),
        output=completion if is_apart else completion - thinking,
        cache_read=read,
        cache_write=write,
        thinking=thinking,
        reported_total=total if is_integer(total) else None,
    )
    return counts.replace(extras=_extras(wire, counts))


def encode_usage(usage: Usage) -> dict[str, Any]:
    """The `usage` of a response."""
    body = _counts(usage)
    words = words_of(usage.extras)
    if "-cached_tokens" in words:
        del body[_PROMPT]["cached_tokens"]
    if "-reasoning_tokens" in words:
        del body[_COMPLETION]["reasoning_tokens"]
    without_absent(body, usage.extras)
    body = overlay.laid_over(body, usage.extras, NAME)
    return {key: value for key, value in body.items() if not key.startswith(":")}


def _counts(usage: Usage) -> dict[str, Any]:
    prompt = {"cached_tokens": usage.cache_read}
    if usage.cache_write:
        prompt["cache_write_tokens"] = usage.cache_write
    return {
        "prompt_tokens": usage.total_input,
        "completion_tokens": usage.total_output,
        "total_tokens": usage.total,
        _PROMPT: prompt,
        _COMPLETION: {"reasoning_tokens": usage.thinking},
    }


def _extras(wire: dict[str, Any], counts: Usage) -> Any:
    """What the counts alone would not write as it was."""
    words = absent(wire, "prompt_tokens", "completion_tokens", "total_tokens", _PROMPT, _COMPLETION)
    for key, name in ((_PROMPT, "cached_tokens"), (_COMPLETION, "reasoning_tokens")):
        details = wire.get(key)
        if is_object(details) and name not in details:
            words.append(f"-{name}")
    left = overlay.difference(wire, _counts(counts), NAME)
    return {**left, **extras_of(left.get(NAME, EMPTY), words)}


def _count(wire: Any, key: str) -> int:
    value = wire.get(key) if is_object(wire) else None
    return value if is_integer(value) and value > 0 else 0
