"""Metrics: what is counted for known requests, and what may become a label."""

from __future__ import annotations

import asyncio
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

from aiohttp import web

from dragoman.gateway.config.settings import GatewayConfig, Hop, Place, RouteSettings
from dragoman.gateway.exposition import exposition
from dragoman.gateway.metrics import DURATIONS, Counts, Metrics, added
from dragoman.gateway.peers import Peers
from dragoman.gateway.records import RequestRecord
from dragoman.model.usage import Usage
from tests.gateway.operations.workers import answering, ask, chat, http, raw, threaded
from tests.gateway.running import place, routed, upstream

_LINE = re.compile(r'(\w+)(?:\{((?:\w+="(?:[^"\\]|\\.)*",?)+)\})? (\S+)')


def read(text: bytes) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """The samples of an exposition; fails if a line is malformed."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for line in text.decode().splitlines():
        if line.startswith("# "):
            continue
        match = _LINE.fullmatch(line)
        assert match, line
        labels = frozenset(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
        assert (match[1], labels) not in found
        found[match[1], labels] = float(match[3])
    return found


def total(samples: dict[Any, float], name: str, **labels: str) -> float:
    """The sum of the samples with these labels."""
    wanted = set(labels.items())
    return sum(
        v for (n, found), v in samples.items() if n == f"dragoman_{name}" and wanted <= found
    )


def finished(**changes: Any) -> RequestRecord:
    """A record of a chat."""
    given: dict[str, Any] = {"status": 200, "seconds": 0.02, **changes}
    return RequestRecord("chat", "openai-chat", **given)


def test_a_known_set_of_requests() -> None:
    """Requests, tokens, errors and times are counted, by front, route, provider and model."""

    async def half_broken(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        return web.Response(status=400) if body["model"] == "bad" else await answering(request)

    with upstream(half_broken) as url:
        config = routed(place("lab", "openai-compatible", url), log="off")
        with threaded(config) as serving:
            for _ in range(3):
                assert ask(serving.port)[0] == 200
            assert ask(serving.port, body=chat(stream=True))[0] == 200
            assert ask(serving.port, "/v1/messages", {**chat(), "max_tokens": 5})[0] == 200
            assert ask(serving.port, body=chat("bad"))[0] == 400
            assert ask(serving.port, "/nothing", method="GET")[0] == 404
            assert ask(serving.port, body=["no object"])[0] == 400
            status, text = ask(serving.port, "/metrics", method="GET")
    assert status == 200
    samples = read(text)
    assert total(samples, "requests_total", front="openai-chat", model="m", status="200") == 4
    assert total(samples, "requests_total", front="anthropic", status="200") == 1
    assert total(samples, "requests_total", model="other", status="400") == 1  # it never answered
    assert total(samples, "requests_total", kind="unknown", status="404") == 1
    assert total(samples, "requests_total", provider="lab", route="*") == 6
    assert total(samples, "tokens_total", type="input") == 4 * 7
    assert total(samples, "tokens_total", type="output") == 4 * 3
    assert total(samples, "request_seconds_count", model="m") == 5
    assert total(samples, "request_seconds_bucket", model="m", le="+Inf") == 5
    assert total(samples, "first_byte_seconds_count", model="m") == 5
    assert total(samples, "passed_through_total") == 4
    assert total(samples, "errors_total", error="InvalidRequest") == 3
    assert total(samples, "active_requests") == 1  # this one
    assert total(samples, "connections") == 1


def test_unknown_names_are_no_labels() -> None:
    """Names that clients invent are counted as `other`, however many."""
    metrics = Metrics()
    for number in range(3_000):
        metrics(finished(model=f"made-up-{number}", route="*", status=404, attempts=1))
    for number in range(1_000):
        metrics(finished(model=f"answered-{number}", attempts=1, usage=Usage(input=1)))
    metrics(finished(model='evil"} 1\nforged', attempts=1, usage=Usage(input=1)))
    samples = read(exposition(metrics.counts(), 1))
    models = {value for _, labels in samples for name, value in labels if name == "model"}
    assert len(models) < 250
    assert "other" in models
    assert total(samples, "requests_total") == 4_001
    assert len(metrics._series) < 1000


def test_configured_models_are_labels() -> None:
    """Even before they have answered."""
    hop = Hop(place=Place(name="lab"), model="big")
    metrics = Metrics()
    metrics.apply(GatewayConfig(routes=(RouteSettings(model="mine", to=(hop,)),)))
    metrics(finished(model="big", status=502, error="ServerError", attempts=2, left=True))
    samples = read(exposition(metrics.counts(), 1))
    assert total(samples, "requests_total", model="big", status="502") == 1
    assert total(samples, "fallbacks_total", model="big") == 1
    assert total(samples, "disconnects_total") == 1


def test_key_rejections() -> None:
    """They are distinguished from rejections of a provider."""
    metrics = Metrics()
    metrics(finished(status=401, error="AuthenticationError"))
    metrics(finished(status=429, error="RateLimited", attempts=1))
    samples = read(exposition(metrics.counts(), 1))
    assert total(samples, "key_refusals_total") == 1
    assert total(samples, "errors_total") == 2


def test_a_route_can_have_any_name() -> None:
    """Quotes, backslashes and line breaks are escaped."""
    metrics = Metrics()
    metrics(finished(route='a"b\\c\nd'))
    samples = read(exposition(metrics.counts(), 1))
    assert total(samples, "requests_total", route='a\\"b\\\\c\\nd') == 1


def test_sums_over_workers() -> None:
    """Counts of several workers are added, including labels that only one has."""
    one, two = Metrics(), Metrics()
    for each in (one, two, two):
        each(finished(route="a", cost=Decimal("0.25"), attempts=1, losses=("x", "y"), sent=5))
    two(finished(route="b", seconds=1000.0, first_byte=0.001))
    samples = read(exposition(added([one.counts(1, 2), two.counts(3, 4)]), 2))
    assert total(samples, "requests_total", route="a") == 3
    assert total(samples, "requests_total", route="b") == 1
    assert total(samples, "cost_usd_total") == 0.75
    assert total(samples, "losses_total") == 6
    assert total(samples, "active_requests") == 4
    assert total(samples, "connections") == 6
    longest = str(DURATIONS[-1])
    assert total(samples, "request_seconds_bucket", route="b", le=longest) == 0
    assert total(samples, "first_byte_seconds_bucket", route="b", le="0.005") == 1


def test_any_worker_reports_the_sum_of_all(tmp_path: Path) -> None:
    """Counts of a dead worker are kept."""
    with upstream(answering) as url:
        config = routed(place("lab", "openai-compatible", url), log="off")
        third = Peers(tmp_path, 3, 3)
        gone = Metrics()
        gone(finished(model="m", route="*"))
        third._save(gone.counts(7, 7))
        one, two = Peers(tmp_path, 1, 3), Peers(tmp_path, 2, 3)
        with threaded(config, number=1, peers=one) as first:
            with threaded(config, number=2, peers=two) as second:
                for port in (first.port, second.port, second.port):
                    assert ask(port)[0] == 200
                samples = read(ask(first.port, "/metrics", method="GET")[1])
                assert (
                    total(samples, "requests_total", model="m")
                    + total(samples, "requests_total", model="other")
                    == 4
                )
                assert total(samples, "workers") == 2
                assert total(samples, "active_requests") == 1
            again = read(ask(first.port, "/metrics", method="GET")[1])
            assert total(again, "requests_total", kind="chat") == 4
            assert total(again, "workers") == 1


def test_a_worker_continues_the_counts_of_its_predecessor(tmp_path: Path) -> None:
    """It starts with them."""
    with upstream(answering) as url:
        config = routed(place("lab", "openai-compatible", url), log="off")
        for times in (1, 2, 3):
            with threaded(config, number=1, peers=Peers(tmp_path, 1, 1)) as serving:
                assert ask(serving.port)[0] == 200
                samples = read(ask(serving.port, "/metrics", method="GET")[1])
                assert total(samples, "requests_total", kind="chat") == times


def test_a_broken_file_of_counts_is_ignored(tmp_path: Path) -> None:
    """It doesn't prevent a start."""
    (tmp_path / "1.json").write_bytes(b'{"series": 7')
    assert Peers(tmp_path, 1, 1)._load(1) is None
    assert Peers(tmp_path, 1, 1)._load(2) is None


def test_disconnecting_clients_are_counted() -> None:
    """With nginx's status 499."""

    async def never(_request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(30)
        raise AssertionError

    with upstream(never) as url:
        config = routed(place("lab", "openai-compatible", url), log="off")
        with threaded(config) as serving:
            connection = raw(serving.port, http("/v1/chat/completions", chat()))
            serving.until(lambda: serving.worker.gateway.active == 1)
            connection.close()
            serving.until(lambda: serving.worker.gateway.active == 0)
            samples = read(ask(serving.port, "/metrics", method="GET")[1])
    assert total(samples, "disconnects_total") == 1
    assert total(samples, "requests_total", status="499") == 1


def test_counts_of_nothing() -> None:
    """A gateway without requests shows its gauges."""
    samples = read(exposition(Counts(), 1))
    assert total(samples, "workers") == 1


def test_failed_attempts_name_their_provider() -> None:
    """Each is counted for its provider, even if another one answered."""
    metrics = Metrics()
    tried = (("blue", "m", 0.1, "Overloaded"), ("green", "m", 0.2, None))
    for _ in range(2):
        metrics(finished(provider="openai", place="green", attempts=2, tried=tried))
    counts = added([metrics.counts(), metrics.counts()])
    samples = read(exposition(counts, 2))
    assert total(samples, "failed_attempts_total", provider="blue", error="Overloaded") == 4
    assert total(samples, "failed_attempts_total") == 4
    assert total(samples, "requests_total", provider="green") == 4
    restored = Metrics()
    restored.restore(counts)
    assert total(read(exposition(restored.counts(), 1)), "failed_attempts_total") == 4
