"""Token counts. The wire's include the cached and the reasoning ones; ours do not overlap (W98)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.frozen import EMPTY, FrozenDict
from dragoman.model.usage import Usage
from dragoman.wire.openai_responses.forms import NAME
from dragoman.wire.overlay import difference, laid_over

_IN, _OUT = "input_tokens_details", "output_tokens_details"


def decode_usage(wire: Mapping[str, Any]) -> Usage:
    """The counts; what is not a number stays in the overlay."""
    total = wire.get("total_tokens")
    cached = _count(wire.get(_IN), "cached_tokens")
    written = _count(wire.get(_IN), "cache_write_tokens")
    thinking = _count(wire.get(_OUT), "reasoning_tokens")
    usage = Usage(
        input=_count(wire, "input_tokens") - cached - written,
        output=_count(wire, "output_tokens") - thinking,
        cache_read=cached,
        cache_write=written,
        thinking=thinking,
        reported_total=total if type(total) is int else None,
    )
    return usage.replace(extras=_decode_form(wire, usage))


def encode_usage(usage: Usage) -> dict[str, Any]:
    """The counts as the wire has them; all of them, unless an overlay says which came."""
    if NAME not in usage.extras:
        return _in_full(usage)
    return laid_over(_counted(usage), usage.extras, NAME)


def _decode_form(wire: Mapping[str, Any], usage: Usage) -> FrozenDict:
    full = _in_full(usage)
    if wire == full and not difference(wire, full, NAME):
        return EMPTY
    return FrozenDict({NAME: EMPTY, **difference(wire, _counted(usage), NAME)})


def _count(wire: Any, key: str) -> int:
    value = wire.get(key) if isinstance(wire, Mapping) else None
    return value if type(value) is int else 0


def _in_full(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.total_input,
        _IN: {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.total_output,
        _OUT: {"reasoning_tokens": usage.thinking},
        "total_tokens": usage.total,
    }


def _counted(usage: Usage) -> dict[str, Any]:
    """Only what is not zero: the overlay knows which zeros the wire had."""
    inner = _filled(cached_tokens=usage.cache_read, cache_write_tokens=usage.cache_write)
    outer = _filled(reasoning_tokens=usage.thinking)
    body = _filled(input_tokens=usage.total_input, output_tokens=usage.total_output)
    if inner:
        body[_IN] = inner
    if outer:
        body[_OUT] = outer
    if usage.reported_total is not None:
        body["total_tokens"] = usage.reported_total
    return body


def _filled(**counts: int) -> dict[str, Any]:
    return {key: count for key, count in counts.items() if count}
