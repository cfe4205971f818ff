"""`usageMetadata`: the prompt's count includes cached tokens, the answer's no thinking (W98)."""

from __future__ import annotations

from typing import Any

from dragoman.model.frozen import EMPTY, FrozenDict, FrozenList
from dragoman.model.usage import Usage
from dragoman.wire.gemini.trace import NAME, Trace, as_it_came, is_object, snake_names
from dragoman.wire.overlay import overlay

_PROMPT, _TOOL_USE = "promptTokenCount", "toolUsePromptTokenCount"
_TOTAL = "totalTokenCount"
_NAMES = snake_names(
    _PROMPT, "candidatesTokenCount", "cachedContentTokenCount", "thoughtsTokenCount",
    _TOOL_USE, _TOTAL,
)  # fmt: skip
_COUNTS = frozenset(_NAMES.values())
_DETAILS = frozenset({
    "promptTokensDetails", "candidatesTokensDetails", "cacheTokensDetails",
    "toolUsePromptTokensDetails",
})  # fmt: skip
_WORDS = frozenset({"serviceTier", "trafficType"})
_PAIR = 2  # fields: modality and tokenCount
_LARGE = 2**63  # what may not be frozen without a look


def decode_usage(wire: Any) -> Usage | None:
    """The counts, in buckets that don't overlap; None where there are none."""
    if not is_object(wire):
        return None
    if (plain := _decode_plain(wire)) is not None:
        return plain
    trace = Trace()
    counts = trace.camel(wire, _NAMES)
    numbers = {key: value for key, value in counts.items() if type(value) is int}
    usage = _counted(numbers, EMPTY)
    rebuilt = encode_usage(usage)
    if _TOOL_USE in numbers and 0 <= numbers[_TOOL_USE] <= usage.total_input:
        rebuilt[_PROMPT] = usage.total_input - numbers[_TOOL_USE]
        rebuilt = {key: value for key, value in rebuilt.items() if value}
    trace.compare(counts, rebuilt)
    extras = trace.extras()
    return usage.replace(extras=extras) if extras else usage


def _decode_plain(wire: dict[str, Any]) -> Usage | None:
    """The usual object: counts that we would write so, and those of each modality.

    None where there is more to it. `decode_usage` comes to the same in five times the time: it
    writes the object to see what we would write otherwise, and makes the usage twice.
    """
    if _TOTAL not in wire or _PROMPT not in wire:
        return None
    left: dict[str, Any] = {}
    for key, value in wire.items():
        if key in _COUNTS:
            if type(value) is not int or value <= 0:
                return None
            if key == _TOOL_USE:
                left[key] = value
        elif key in _DETAILS and type(value) is list and all(map(_is_detail, value)):
            left[key] = FrozenList(map(FrozenDict, value))
        elif key in _WORDS and type(value) is str:
            left[key] = value
        else:
            return None
    return _counted(wire, _left_over(left))


def _left_over(left: dict[str, Any]) -> FrozenDict:
    if not left:
        return EMPTY
    return FrozenDict({NAME: FrozenDict(left)})


def _is_detail(wire: Any) -> bool:
    if type(wire) is not dict or len(wire) != _PAIR or type(wire.get("modality")) is not str:
        return False
    count = wire.get("tokenCount")
    return type(count) is int and 0 <= count < _LARGE


def _counted(counts: dict[str, int], extras: FrozenDict) -> Usage:
    get = counts.get
    cached = get("cachedContentTokenCount", 0)
    return Usage(
        input=get(_PROMPT, 0) + get(_TOOL_USE, 0) - cached,
        output=get("candidatesTokenCount", 0),
        cache_read=cached,
        thinking=get("thoughtsTokenCount", 0),
        reported_total=get(_TOTAL),
        extras=extras,
    )


def encode_usage(usage: Usage) -> dict[str, Any]:
    """The counts as the API has them; zeros are left out, as it does."""
    beside = overlay(usage.extras, NAME).get(_TOOL_USE)
    prompt = usage.total_input
    if type(beside) is int and 0 <= beside <= prompt:
        prompt -= beside  # what the provider's own tools put in is told apart
    counts = {
        _PROMPT: prompt,
        "cachedContentTokenCount": usage.cache_read,
        "candidatesTokenCount": usage.output,
        "thoughtsTokenCount": usage.thinking,
        _TOTAL: usage.total,
    }
    body = {key: count for key, count in counts.items() if count}
    return as_it_came(body, usage.extras) if usage.extras else body
