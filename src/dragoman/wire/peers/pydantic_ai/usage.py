"""Token counts, why an answer ended, and who gave it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.frozen import EMPTY
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.overlay import difference, laid_over
from dragoman.wire.peers.pydantic_ai.spelling import NAME, mapping_at

_FINISHES = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "content_filter": FinishReason.CONTENT_FILTER,
    "tool_call": FinishReason.TOOL_CALLS,
    "error": FinishReason.ERROR,
}
_WORDS = {finish: word for word, finish in _FINISHES.items()} | {
    FinishReason.REFUSAL: "content_filter",
    FinishReason.CONTEXT_FULL: "length",
    FinishReason.MALFORMED_CALL: "error",
    FinishReason.CANCELLED: "error",
}


def decode_usage(given: Any) -> Usage | None:
    """The counts of a response; None where there are none. Totals include the cached tokens."""
    if not isinstance(given, Mapping) or not any(given.values()):
        return None
    total_input, total_output = _count(given, "input_tokens"), _count(given, "output_tokens")
    read = min(_count(given, "cache_read_tokens"), total_input)
    written = min(_count(given, "cache_write_tokens"), total_input - read)
    thought = _count(given, "output_reasoning_tokens")
    thought = thought or _count(mapping_at(given, "details"), "reasoning_tokens")
    thought = min(thought, total_output)
    usage = Usage(total_input - read - written, total_output - thought, read, written, thought)
    ours = encode_usage(usage)
    kept = {key: item for key, item in given.items() if item or key in ours}
    extras = difference(kept, ours, NAME)
    return usage.replace(extras=extras) if extras else usage


def _count(given: Mapping[str, Any], key: str) -> int:
    count = given.get(key)
    return count if type(count) is int and count > 0 else 0


def encode_usage(usage: Usage) -> dict[str, Any]:
    """The counts as pydantic-ai has them."""
    counts = {
        "input_tokens": usage.total_input,
        "cache_write_tokens": usage.cache_write,
        "cache_read_tokens": usage.cache_read,
        "output_tokens": usage.total_output,
        "output_reasoning_tokens": usage.thinking,
    }
    written: dict[str, Any] = {key: count for key, count in counts.items() if count}
    return written if usage.extras is EMPTY else laid_over(written, usage.extras, NAME)


def decode_finish(word: Any) -> FinishReason | None:
    """Why the answer ended."""
    if not isinstance(word, str):
        return None
    return _FINISHES.get(word, FinishReason.OTHER)


def encode_finish(finish: FinishReason) -> tuple[str | None, bool]:
    """The word for it, and whether that says the same."""
    word = _WORDS.get(finish)
    return word, word is not None and _FINISHES[word] is finish
