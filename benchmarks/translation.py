"""An OpenAI Chat request in other dialects, bytes to bytes, beside raw JSON and the peers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import dragoman
from benchmarks import conversations, peers
from benchmarks.clock import seconds
from benchmarks.report import Ratio, show

_BASE = "orjson, loads and dumps of the same bytes"
_ROUNDS = 40


def translation() -> list[Ratio]:
    """1,000 messages with 250 tool calls."""
    body = conversations.body()
    return [*_to_anthropic(body), *_to_gemini(body), *_to_others(body)]


def _to_anthropic(body: bytes) -> list[Ratio]:
    times = _timed({"dragoman": ours("anthropic"), **peers.to_anthropic()}, body)
    mine = times["dragoman"]
    litellm = min(value for name, value in times.items() if name.startswith("litellm"))
    ratios = [
        Ratio("against orjson", mine / times[_BASE], at_most=2.5),
        Ratio("against litellm's faster way", mine / litellm, at_most=0.5),
        *_faster(times),
    ]
    show(f"OpenAI Chat to Anthropic, 1,000 messages ({len(body):,} bytes)", times, ratios)
    return ratios


def _to_gemini(body: bytes) -> list[Ratio]:
    times = _timed({"dragoman": ours("gemini"), **peers.to_gemini()}, body)
    ratios = [
        Ratio("against orjson", times["dragoman"] / times[_BASE], at_most=3),
        *_faster(times),
    ]
    show("OpenAI Chat to Gemini, the same", times, ratios)
    return ratios


def _to_others(body: bytes) -> list[Ratio]:
    names = ("openai-responses", "ollama", "openai-chat")
    ways: dict[str, peers.Translate] = {name: ours(name) for name in names}
    times = _timed(ways, body)
    ratios = [Ratio(f"{name}, against orjson", times[name] / times[_BASE], 2.5) for name in names]
    show("OpenAI Chat to the other dialects, and to itself", times, ratios)
    return ratios


def ours(target: str) -> peers.Translate:
    """Dragoman's way."""
    return lambda body: dragoman.translate(body, source="openai-chat", target=target).to_bytes()


def _timed(ways: Mapping[str, peers.Translate], body: bytes) -> dict[str, float]:
    """Seconds for each, raw JSON first; none is measured that leaves anything out."""
    import orjson

    for name, way in ways.items():
        assert conversations.is_whole(way(body)), name
    jobs = {name: partial(way, body) for name, way in ways.items()}
    raw = {_BASE: lambda: orjson.dumps(orjson.loads(body))}
    return seconds({**raw, **jobs}, rounds=_ROUNDS, per_round=0.001)


def _faster(times: Mapping[str, float]) -> list[Ratio]:
    return [
        Ratio(f"times faster than {name.partition(',')[0]}", value / times["dragoman"])
        for name, value in times.items()
        if name.startswith(("llm-rosetta", "langchain"))
    ]
