"""Counts as text, in the form that Prometheus reads (version 0.0.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dragoman.errors import PermissionDenied
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.metrics import DURATIONS, Counts, Series

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LABELS = ("kind", "front", "route", "provider", "model")
_SUMS: tuple[tuple[str, str, Callable[[Series], float]], ...] = (
    ("cost_usd", "US dollars, where the price is known.", lambda each: each.cost),
    ("losses", "Things that could not be said in the target's dialect.", lambda each: each.losses),
    (
        "repairs",
        "Things that were changed so that the target takes them.",
        lambda each: each.repairs,
    ),
    ("fallbacks", "Places that were asked in vain before another.", lambda each: each.fallbacks),
    ("disconnects", "Clients that left before the end.", lambda each: each.disconnects),
    ("response_bytes", "Bytes of answers' bodies.", lambda each: each.sent),
    ("cached", "Answers out of the response cache.", lambda each: each.cached),
    ("passed_through", "Answers whose bytes passed untouched.", lambda each: each.passed),
)
_TOKENS: tuple[tuple[str, Callable[[Series], int]], ...] = (
    ("input", lambda each: each.tokens_in),
    ("output", lambda each: each.tokens_out),
    ("cache_read", lambda each: each.tokens_cached),
    ("cache_write", lambda each: each.tokens_written),
    ("reasoning", lambda each: each.tokens_reasoning),
)


async def metrics(inbound: InboundRequest) -> None:
    """`/metrics`: for those with an admin's key, or, where there are no keys, for this machine."""
    if inbound.key is not None and not inbound.key.is_admin:
        msg = "metrics are shown to admin keys only (`dragoman keys create --admin`)"
        raise PermissionDenied(msg, status=403)
    made = inbound.gateway.exposition
    body = b"" if made is None else await made()
    await inbound.call.respond(200, {"content-type": CONTENT_TYPE}, body)


def exposition(counts: Counts, workers: int) -> bytes:
    """The text."""
    series = sorted(counts.series, key=lambda each: each.labels)
    lines = [
        *_requests(series),
        *_histogram("request_seconds", "Until the end of the answer.", series,
                    lambda each: (each.durations, each.seconds)),
        *_histogram("first_byte_seconds", "Until the first byte of the answer.", series,
                    lambda each: (each.first_bytes, each.first_seconds)),
        *_tokens(series),
    ]  # fmt: skip
    for name, text, value in _SUMS:
        rows = [(_labels(each), value(each)) for each in series if value(each)]
        lines += _family(f"{name}_total", "counter", text, rows)
    lines += _by("errors_total", "Requests that failed, by error.", "error", counts.errors)
    refused = "Requests refused for their key, its limits or its budgets."
    lines += _by("key_refusals_total", refused, "error", counts.refusals)
    lines += _gauges(counts, workers)
    return ("\n".join(lines) + "\n").encode()


def _gauges(counts: Counts, workers: int) -> Iterable[str]:
    for name, kind, text, number in (
        ("active_requests", "gauge", "Requests in progress.", counts.active),
        ("connections", "gauge", "Open connections of clients.", counts.connections),
        ("workers", "gauge", "Workers that answered.", workers),
        ("reloads_total", "counter", "Configurations taken on, in any worker.", counts.reloads),
        ("failed_reloads_total", "counter", "Configurations refused.", counts.failed_reloads),
        ("dropped_log_lines_total", "counter", "Log lines nobody read in time.",
         counts.dropped_log_lines),
    ):  # fmt: skip
        yield from _family(name, kind, text, [("", number)])


def _requests(series: Sequence[Series]) -> Iterable[str]:
    rows = [
        (_labels(each, f'status="{status}"'), number)
        for each in series
        for status, number in sorted(each.statuses.items())
    ]
    return _family("requests_total", "counter", "Requests, by what became of them.", rows)


def _tokens(series: Sequence[Series]) -> Iterable[str]:
    rows = [
        (_labels(each, f'type="{name}"'), value(each))
        for each in series
        for name, value in _TOKENS
        if value(each)
    ]
    return _family("tokens_total", "counter", "Tokens, in buckets that don't overlap.", rows)


def _histogram(
    name: str, text: str, series: Sequence[Series],
    of: Callable[[Series], tuple[list[int], float]],
) -> Iterable[str]:  # fmt: skip
    yield f"# HELP dragoman_{name} {text}"
    yield f"# TYPE dragoman_{name} histogram"
    for each in series:
        buckets, seconds = of(each)
        total = 0
        for bound, number in zip((*map(str, DURATIONS), "+Inf"), buckets, strict=True):
            total += number
            labels = _labels(each, f'le="{bound}"')
            yield f"dragoman_{name}_bucket{labels} {total}"
        yield f"dragoman_{name}_sum{_labels(each)} {seconds!r}"
        yield f"dragoman_{name}_count{_labels(each)} {total}"


def _by(name: str, text: str, label: str, numbers: dict[str, int]) -> Iterable[str]:
    rows = [(f'{{{label}="{_escaped(key)}"}}', n) for key, n in sorted(numbers.items())]
    return _family(name, "counter", text, rows)


def _family(name: str, kind: str, text: str, rows: Sequence[tuple[str, float]]) -> Iterable[str]:
    yield f"# HELP dragoman_{name} {text}"
    yield f"# TYPE dragoman_{name} {kind}"
    for labels, number in rows:
        yield f"dragoman_{name}{labels} {number!r}"


def _labels(series: Series, more: str = "") -> str:
    pairs = [
        f'{name}="{_escaped(value)}"' for name, value in zip(_LABELS, series.labels, strict=True)
    ]
    return f"{{{','.join([*pairs, more] if more else pairs)}}}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
