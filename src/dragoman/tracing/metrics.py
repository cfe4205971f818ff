"""The metrics of model calls."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from dragoman.model.usage import Usage
from dragoman.tracing.attributes import Place

_TOKENS = [4**power for power in range(14)]
_SECONDS = [0.01 * 2**power for power in range(14)]


class _Instruments:
    """The instruments of the current meter provider."""

    meter: Any = None
    duration: Any = None
    first: Any = None
    tokens: Any = None


def measure(
    meter: Any, place: Place, model: str | None, error: str | None, seconds: float,
    first: float | None, usage: Usage | None,
) -> None:  # fmt: skip
    """Record a call: its duration, the time to its first chunk, and its tokens."""
    with suppress(Exception):  # a custom meter or reader
        kept = _instruments(meter)
        labels = place.labels(model, error)
        kept.duration.record(seconds, labels.call)
        if first is not None:
            kept.first.record(first, labels.call)
        if usage is not None and error is None:
            kept.tokens.record(usage.total_input, labels.input)
            kept.tokens.record(usage.total_output, labels.output)


def _instruments(meter: Any) -> type[_Instruments]:
    kept = _Instruments
    if kept.meter is not meter:
        kept.duration = _histogram(meter, "operation.duration", "s", _SECONDS)
        kept.first = _histogram(meter, "operation.time_to_first_chunk", "s", _SECONDS)
        kept.tokens = _histogram(meter, "token.usage", "{token}", _TOKENS)
        kept.meter = meter
    return kept


def _histogram(meter: Any, name: str, unit: str, bounds: list[Any]) -> Any:
    return meter.create_histogram(
        f"gen_ai.client.{name}", unit=unit, explicit_bucket_boundaries_advisory=bounds
    )
