"""In-memory metrics of a worker.

Each request is added to one `Series`, selected by its labels, which takes about a microsecond.
Model names that clients choose become labels only if the model is configured or has responded, up
to a limit; all others are counted as `other`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from dragoman.gateway.config.settings import GatewayConfig
from dragoman.gateway.records import RequestRecord

DURATIONS = (
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    120.0,
    300.0,
)
"""Upper bounds of the histograms' buckets, in seconds."""
_BUCKETS = len(DURATIONS) + 1
_MAX_LEARNED = 200  # names of models that responded without being configured
_MAX_SERIES = 5000
_SAFE = re.compile(r"[A-Za-z0-9_.:/@+*-]{1,128}", re.ASCII)
OTHER = "other"
_REFUSED = frozenset({"AuthenticationError", "PermissionDenied", "RateLimited", "QuotaExceeded"})
_FAILED = 400

Labels = tuple[str, str, str, str, str]


class Series(msgspec.Struct, gc=False):
    """Sums over the requests that have the same labels."""

    labels: Labels
    statuses: dict[int, int]
    durations: list[int]
    first_bytes: list[int]
    seconds: float = 0.0
    first_seconds: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    tokens_written: int = 0
    tokens_reasoning: int = 0
    cost: float = 0.0
    losses: int = 0
    repairs: int = 0
    fallbacks: int = 0
    disconnects: int = 0
    sent: int = 0
    passed: int = 0
    cached: int = 0

    @classmethod
    def empty(cls, labels: Labels) -> Series:
        """A series with all counts at zero."""
        return cls(labels, {}, [0] * _BUCKETS, [0] * _BUCKETS)


class Counts(msgspec.Struct):
    """A worker's counters and current gauges, as workers exchange them."""

    series: list[Series] = []
    errors: dict[str, int] = {}
    refusals: dict[str, int] = {}
    active: int = 0
    connections: int = 0
    reloads: int = 0
    failed_reloads: int = 0
    dropped_log_lines: int = 0
    failed_attempts: dict[str, int] = {}
    """By the provider's name and the type of the error, with a space between them."""


class Metrics:
    """The metrics of one worker."""

    def __init__(self) -> None:
        self._series: dict[tuple[str | None, ...], Series] = {}  # by the unfiltered names
        self._kept: dict[Labels, Series] = {}
        self._errors: dict[str, int] = {}
        self._refusals: dict[str, int] = {}
        self._failed: dict[str, int] = {}
        self._models: frozenset[str] = frozenset()
        self._learned: set[str] = set()
        self.reloads = self.failed_reloads = 0

    def apply(self, config: GatewayConfig) -> None:
        """Allow the model names of a configuration as labels."""
        self._models = frozenset(_names(config))

    def __call__(self, record: RequestRecord) -> None:
        """Count a completed request."""
        key = (record.kind, record.front, record.route, record.provider_name, record.model)
        series = self._series.get(key)
        if series is None:
            series = self._find_series(key, record)
        status = record.status
        series.statuses[status] = series.statuses.get(status, 0) + 1
        series.seconds += record.seconds
        series.durations[bisect_left(DURATIONS, record.seconds)] += 1
        first = record.first_byte
        if first is not None:
            series.first_seconds += first
            series.first_bytes[bisect_left(DURATIONS, first)] += 1
        series.sent += record.sent
        series.cached += record.cached
        if record.attempts:
            self._count_response(series, record)
            self._count_failed(record)
        if record.error is not None:
            self._count_error(record, record.error)
        if record.left:
            series.disconnects += 1

    def _count_response(self, series: Series, record: RequestRecord) -> None:
        usage = record.usage
        if usage is not None:
            series.tokens_in += usage.input
            series.tokens_out += usage.output
            if usage.cache_read or usage.cache_write:
                series.tokens_cached += usage.cache_read
                series.tokens_written += usage.cache_write
            if usage.thinking:
                series.tokens_reasoning += usage.thinking
        if record.cost is not None:
            series.cost += float(record.cost)
        if record.losses:
            series.losses += len(record.losses)
        if record.repairs:
            series.repairs += len(record.repairs)
        if record.attempts > 1:
            series.fallbacks += record.attempts - 1
        if record.passes:
            series.passed += 1

    def _count_failed(self, record: RequestRecord) -> None:
        for provider, _, _, error in record.tried:
            if error is not None:
                name = f"{provider} {error}"
                self._failed[name] = self._failed.get(name, 0) + 1

    def _count_error(self, record: RequestRecord, error: str) -> None:
        self._errors[error] = self._errors.get(error, 0) + 1
        if not record.attempts and error in _REFUSED:
            self._refusals[error] = self._refusals.get(error, 0) + 1

    # --- labels

    def _find_series(self, key: tuple[str | None, ...], record: RequestRecord) -> Series:
        labels: Labels = (
            record.kind,
            record.front,
            _label(record.route),
            _label(record.provider_name),
            self._model(record),
        )
        if labels not in self._kept and len(self._kept) >= _MAX_SERIES:
            labels = (record.kind, record.front, OTHER, OTHER, OTHER)
        found = self._kept.get(labels)
        if found is None:
            found = self._kept[labels] = Series.empty(labels)
        if labels[-1] == (record.model or "") and len(self._series) < _MAX_SERIES:
            self._series[key] = found  # `other` is not cached: the name may become known
        return found

    def _model(self, record: RequestRecord) -> str:
        name = record.model
        if name is None:
            return ""
        if name in self._models or name in self._learned:
            return name
        has_answered = 0 < record.status < _FAILED and record.usage is not None
        if has_answered and len(self._learned) < _MAX_LEARNED and _SAFE.fullmatch(name):
            self._learned.add(name)
            return name
        return OTHER

    # --- results

    def counts(self, active: int = 0, connections: int = 0) -> Counts:
        """All counters, with the current gauges."""
        return Counts(
            list(self._kept.values()), self._errors, self._refusals, active, connections,
            self.reloads, self.failed_reloads, failed_attempts=self._failed,
        )  # fmt: skip

    def restore(self, counts: Counts) -> None:
        """Continue the counts of the worker that this one replaces: counters must not decrease."""
        self._kept = {each.labels: each for each in counts.series}
        self._learned |= {each.labels[-1] for each in counts.series} - {OTHER, ""}
        self._errors, self._refusals = counts.errors, counts.refusals
        self._failed = counts.failed_attempts
        self.reloads, self.failed_reloads = counts.reloads, counts.failed_reloads


def _names(config: GatewayConfig) -> Iterable[str]:
    for route in config.routes:
        if not route.is_pattern:
            yield route.model
        yield from (hop.model for hop in route.to if hop.model is not None)
    yield from config.aliases
    yield from config.aliases.values()


def _label(name: str | None) -> str:
    """A name from the configuration as a label."""
    return "" if name is None else name[:128]


def added(counts: Iterable[Counts]) -> Counts:
    """Add up the counts of several workers."""
    series: dict[Labels, Series] = {}
    total = Counts(errors={}, refusals={}, failed_attempts={})
    for each in counts:
        for one in each.series:
            _add(series.setdefault(one.labels, Series.empty(one.labels)), one)
        _add_numbers(total.errors, each.errors)
        _add_numbers(total.refusals, each.refusals)
        _add_numbers(total.failed_attempts, each.failed_attempts)
        for name in _NUMBERS:
            setattr(total, name, getattr(total, name) + getattr(each, name))
    total.series = list(series.values())
    return total


_NUMBERS = ("active", "connections", "reloads", "failed_reloads", "dropped_log_lines")
_SUMS = tuple(name for name in Series.__struct_fields__ if name not in
              {"labels", "statuses", "durations", "first_bytes"})  # fmt: skip


def _add(total: Series, one: Series) -> None:
    _add_numbers(total.statuses, one.statuses)
    total.durations = [a + b for a, b in zip(total.durations, one.durations, strict=True)]
    total.first_bytes = [a + b for a, b in zip(total.first_bytes, one.first_bytes, strict=True)]
    for name in _SUMS:
        setattr(total, name, getattr(total, name) + getattr(one, name))


def _add_numbers(total: dict[Any, int], more: Mapping[Any, int]) -> None:
    for name, number in more.items():
        total[name] = total.get(name, 0) + number
