"""Token counts: the wire's overlap, the model's do not (W19)."""

from __future__ import annotations

from typing import Any

from dragoman.model.frozen import EMPTY
from dragoman.model.usage import Usage
from dragoman.wire import overlay
from dragoman.wire.agreement import Bearings, agreed, with_notes
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
_BEARINGS: Bearings = {
    **dict.fromkeys(_CACHED, "cache_read"),
    "reasoning_tokens": "thinking",
}
_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
_FIELDS = (*_COUNTS, _PROMPT, _COMPLETION)
_NO_DETAILS = extras_of(EMPTY, absent(_COUNTS, *_FIELDS))


def decode_usage(wire: dict[str, Any]) -> Usage:
    """The counts in `usage`."""
    return _decode_bare(wire) or _decode_detailed(wire)


def _decode_bare(wire: dict[str, Any]) -> Usage | None:
    """Three counts, in a fifth of the time; None where there is more to it, or less."""
    if len(wire) != len(_COUNTS):
        return None
    prompt, completion, total = map(wire.get, _COUNTS)
    if not (is_integer(prompt) and is_integer(completion) and is_integer(total)):
        return None
    if prompt < 0 or completion < 0:
        return None
    return Usage(prompt, completion, reported_total=total, extras=_NO_DETAILS)


def _decode_detailed(wire: dict[str, Any]) -> Usage:
    prompt, completion = _count(wire, "prompt_tokens"), _count(wire, "completion_tokens")
    asked, answered = _details(wire, _PROMPT), _details(wire, _COMPLETION)
    read = _count(asked, "cached_tokens") or max([_count(wire, key) for key in _CACHED])
    write = _count(asked, "cache_write_tokens")
    thinking = _count(answered, "reasoning_tokens") or _count(wire, "reasoning_tokens")
    total = wire.get("total_tokens")
    # xAI counts thinking beside the answer, not in it; its total tells.
    is_apart = thinking > completion or total == prompt + completion + thinking
    output = completion if is_apart else completion - thinking
    fresh = max(prompt - read - write, 0)
    reported = total if is_integer(total) else None
    all_input, all_output = fresh + read + write, output + thinking
    whole = all_input + all_output if reported is None else reported
    extras = _extras(wire, _written(all_input, all_output, whole, read, write, thinking))
    usage = Usage(fresh, output, read, write, thinking, reported, extras)
    return with_notes(usage, NAME, _BEARINGS)


def encode_usage(usage: Usage) -> dict[str, Any]:
    """The `usage` of a response."""
    body = _written(
        usage.total_input,
        usage.total_output,
        usage.total,
        usage.cache_read,
        usage.cache_write,
        usage.thinking,
    )
    extras = agreed(usage, NAME, _BEARINGS)
    words, over = words_of(extras), overlay.overlay(extras, NAME)
    # A detail that was not there stays out while there is nothing to say, or it is said elsewhere.
    has_read = bool(usage.cache_read) and over.keys().isdisjoint(_CACHED)
    has_cached = has_read or bool(usage.cache_write)
    has_thinking = bool(usage.thinking) and "reasoning_tokens" not in over
    if "-cached_tokens" in words and not has_read:
        del body[_PROMPT]["cached_tokens"]
    if "-reasoning_tokens" in words and not has_thinking:
        del body[_COMPLETION]["reasoning_tokens"]
    details = (body[_PROMPT] if has_cached else None, body[_COMPLETION] if has_thinking else None)
    without_absent(body, extras)
    for key, said in zip((_PROMPT, _COMPLETION), details, strict=True):
        if said is not None:
            body[key] = said
    body = overlay.laid_over(body, extras, NAME)
    return {key: value for key, value in body.items() if not key.startswith(":")}


def _written(
    prompt: int, completion: int, total: int, read: int, write: int, thinking: int
) -> dict[str, Any]:
    """What the counts alone say: all of the prompt, all of the answer, and what of them is what."""
    details = {"cached_tokens": read}
    if write:
        details["cache_write_tokens"] = write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": total,
        _PROMPT: details,
        _COMPLETION: {"reasoning_tokens": thinking},
    }


def _extras(wire: dict[str, Any], rebuilt: dict[str, Any]) -> Any:
    """What the counts alone would not write as it was."""
    words = absent(wire, *_FIELDS)
    for key, name in ((_PROMPT, "cached_tokens"), (_COMPLETION, "reasoning_tokens")):
        details = wire.get(key)
        if is_object(details) and name not in details:
            words.append(f"-{name}")
    left = overlay.difference(wire, rebuilt, NAME)
    if not words:
        return left
    noted = extras_of(left.get(NAME, EMPTY), words)
    return {**left, **noted} if left.keys() - {NAME} else noted


def _details(wire: dict[str, Any], key: str) -> dict[str, Any]:
    details = wire.get(key)
    return details if is_object(details) else {}


def _count(wire: dict[str, Any], key: str) -> int:
    value = wire.get(key)
    return value if is_integer(value) and value > 0 else 0
