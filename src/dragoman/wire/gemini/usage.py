"""`usageMetadata`: the prompt's count includes cached tokens, the answer's no thinking (W98)."""

from __future__ import annotations

from typing import Any

from dragoman.model.usage import Usage
from dragoman.wire.gemini.trace import Trace, as_it_came, is_object, snake_names

_NAMES = snake_names(
    "promptTokenCount", "candidatesTokenCount", "cachedContentTokenCount", "thoughtsTokenCount",
    "toolUsePromptTokenCount", "totalTokenCount",
)  # fmt: skip


def decode_usage(wire: Any) -> Usage | None:
    """The counts, in buckets that don't overlap; None where there are none."""
    if not is_object(wire):
        return None
    trace = Trace()
    counts = trace.camel(wire, _NAMES)
    cached = _count(counts, "cachedContentTokenCount")
    prompt = _count(counts, "promptTokenCount") + _count(counts, "toolUsePromptTokenCount")
    total = counts.get("totalTokenCount")
    usage = Usage(
        input=prompt - cached,
        output=_count(counts, "candidatesTokenCount"),
        cache_read=cached,
        thinking=_count(counts, "thoughtsTokenCount"),
        reported_total=total if type(total) is int else None,
    )
    trace.compare(counts, encode_usage(usage))
    extras = trace.extras()
    return usage.replace(extras=extras) if extras else usage


def encode_usage(usage: Usage) -> dict[str, Any]:
    """The counts as the API has them; zeros are left out, as it does."""
    counts = {
        "promptTokenCount": usage.total_input,
        "cachedContentTokenCount": usage.cache_read,
        "candidatesTokenCount": usage.output,
        "thoughtsTokenCount": usage.thinking,
        "totalTokenCount": usage.total,
    }
    body = {key: count for key, count in counts.items() if count}
    return as_it_came(body, usage.extras) if usage.extras else body


def _count(wire: dict[str, Any], key: str) -> int:
    value = wire.get(key)
    return value if type(value) is int else 0
