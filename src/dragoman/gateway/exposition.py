"""The `/metrics` endpoint, in Prometheus' text format (version 0.0.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dragoman.errors import PermissionDenied
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.metrics import DURATIONS, Counts, Series

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LABELS = ("kind", "front", "route", "provider", "model")
_SUMS: tuple[tuple[str, str, Callable[[Series], float]], ...] = (
    ("cost_usd", "Cost in US dollars, where the price is known.", lambda each: each.cost),
    ("losses", "Request fields that the target does not support.", lambda each: each.losses),
    (
        "repairs",
        "Changes made so that the target accepts the request.",
        lambda each: each.repairs,
    ),
    ("fallbacks", "Failed attempts followed by another upstream.", lambda each: each.fallbacks),
    ("disconnects", "Clients that disconnected before the end.", lambda each: each.disconnects),
    ("response_bytes", "Bytes of response bodies.", lambda each: each.sent),
    ("cached", "Responses served from the cache.", lambda each: each.cached),
    ("passed_through", "Responses passed through unchanged.", lambda each: each.passed),
)
_TOKENS: tuple[tuple[str, Callable[[Series], int]], ...] = (
    ("input", lambda each: each.tokens_in),
    ("output", lambda each: each.tokens_out),
    ("cache_read", lambda each: each.tokens_cached),
    ("cache_write", lambda each: each.tokens_written),
    ("reasoning", lambda each: each.tokens_reasoning),
)


async def metrics(inbound: InboundRequest) -> None:
    """Serve `/metrics`, with keys only to admin keys."""
    if inbound.key is not None and not inbound.key.is_admin:
        msg = "metrics are shown to admin keys only (`dragoman keys create --admin`)"
        raise PermissionDenied(msg, status=403)
    made = inbound.gateway.exposition
    body = b"" if made is None else await made()
    await inbound.call.respond(200, {"content-type": CONTENT_TYPE}, body)


def exposition(counts: Counts, workers: int) -> bytes:
    """Render counts in Prometheus' text format."""
    series = sorted(counts.series, key=lambda each: each.labels)
    lines = [
        *_requests(series),
        *_histogram("request_seconds", "Seconds until the end of the response.", series,
                    lambda each: (each.durations, each.seconds)),
        *_histogram("first_byte_seconds", "Seconds until the first byte of the response.", series,
                    lambda each: (each.first_bytes, each.first_seconds)),
        *_tokens(series),
    ]  # fmt: skip
    for name, text, value in _SUMS:
        rows = [(_labels(each), value(each)) for each in series if value(each)]
        lines += _family(f"{name}_total", "counter", text, rows)
    lines += _by("errors_total", "Failed requests by error type.", "error", counts.errors)
    refused = "Requests refused because of their key, its limits or its budgets."
    lines += _by("key_refusals_total", refused, "error", counts.refusals)
    lines += _failed_attempts(counts.failed_attempts)
    lines += _gauges(counts, workers)
    return ("\n".join(lines) + "\n").encode()


def _gauges(counts: Counts, workers: int) -> Iterable[str]:
    for name, kind, text, number in (
        ("active_requests", "gauge", "Requests in progress.", counts.active),
        ("connections", "gauge", "Open client connections.", counts.connections),
        ("workers", "gauge", "Workers included in these numbers.", workers),
        ("reloads_total", "counter", "Configuration reloads, over all workers.", counts.reloads),
        ("failed_reloads_total", "counter", "Failed configuration reloads.", counts.failed_reloads),
        ("dropped_log_lines_total", "counter", "Log lines dropped because the queue was full.",
         counts.dropped_log_lines),
    ):  # fmt: skip
        yield from _family(name, kind, text, [("", number)])


def _requests(series: Sequence[Series]) -> Iterable[str]:
    rows = [
        (_labels(each, f'status="{status}"'), number)
        for each in series
        for status, number in sorted(each.statuses.items())
    ]
    return _family("requests_total", "counter", "Requests by status.", rows)


def _tokens(series: Sequence[Series]) -> Iterable[str]:
    rows = [
        (_labels(each, f'type="{name}"'), value(each))
        for each in series
        for name, value in _TOKENS
        if value(each)
    ]
    return _family("tokens_total", "counter", "Tokens by type; the types don't overlap.", rows)


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


def _failed_attempts(numbers: dict[str, int]) -> Iterable[str]:
    rows = []
    for name, number in sorted(numbers.items()):
        provider, _, error = name.rpartition(" ")
        rows.append((f'{{provider="{_escaped(provider)}",error="{error}"}}', number))
    text = "Failed attempts at a provider, also where another one then responded."
    return _family("failed_attempts_total", "counter", text, rows)


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
