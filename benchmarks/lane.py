"""Requests of other sizes than a long conversation, each against orjson on the same bytes.

Known heads, new ones, many tools, the same dialect, conversations that grow, and requests that
leave the lane: those are timed with the lane switched off beside them.
"""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from time import thread_time
from typing import Any

import dragoman
from benchmarks import conversations, peers
from benchmarks.clock import seconds
from benchmarks.report import Ratio, show
from dragoman.wire.lane import prefixes, switch
from dragoman.wire.lane.requests import HEADS

Job = Callable[[], object]
_BASE = "orjson, loads and dumps of the same bytes"
_TO = "anthropic"


def lane() -> list[Ratio]:
    """All of them."""
    return [*_small(), *_tools(), *_other_sources(), *_same(), *_growing(), *_leaving(), *_memory()]


def with_tools(rounds: int, tools: int, words: int) -> dict[str, Any]:
    """A conversation of so many rounds, behind so many tools with descriptions of so many words."""
    body = conversations.chat(rounds)
    (tool,) = body["tools"]
    described = {**tool["function"], "description": "The weather in a city. " * (words // 5)}
    others = [{**described, "name": f"weather_{number}"} for number in range(1, tools)]
    declared = [{"type": "function", "function": each} for each in (described, *others)]
    return {**body, "tools": declared}


def _bytes(body: dict[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def _ours(raw: bytes, target: str = _TO, source: str = "openai-chat", **options: Any) -> Job:
    if options:
        return lambda: dragoman.translate(raw, source=source, target=target, **options).to_bytes()
    return lambda: dragoman.translate(raw, source=source, target=target).to_bytes()


def _theirs(raw: bytes) -> dict[str, Job]:
    return {name: partial(way, raw) for name, way in peers.to_anthropic().items()}


def _new_heads(body: dict[str, Any], **fields: Any) -> Job:
    """Each time with another number in these fields, where they have `NUMBER`."""
    numbers = count(1000)
    raw = _bytes({**body, **fields}).replace(b'"NUMBER"', b"NUMBER")
    assert raw.count(b"NUMBER") == 1
    return lambda: dragoman.translate(
        raw.replace(b"NUMBER", str(next(numbers)).encode(), 1), source="openai-chat", target=_TO
    ).to_bytes()


def _timed(raw: bytes, jobs: dict[str, Job]) -> dict[str, float]:
    import orjson

    timed = {_BASE: lambda: orjson.dumps(orjson.loads(raw)), **jobs}
    return seconds(timed, rounds=30, per_round=0.002, clock=thread_time)


def _against(times: dict[str, float], bars: dict[str, float | None]) -> list[Ratio]:
    return [Ratio(f"{name}, against orjson", times[name] / times[_BASE], bars.get(name))
            for name in times if name != _BASE]  # fmt: skip


def _small() -> list[Ratio]:
    """Five messages and a tool: what most requests are like."""
    body = conversations.chat(1)
    raw = _bytes(body)
    (tool,) = body["tools"]
    described = {**tool["function"], "description": "The weather, as of NUMBER."}
    new_tool = [{**tool, "function": described}]
    new_prompt = [{"role": "system", "content": "Request NUMBER."}, *body["messages"]]
    jobs = {
        "head known": _ours(raw),
        "another user": _new_heads(body, user="u-NUMBER"),
        "head new: its limit": _new_heads(body, max_completion_tokens="NUMBER"),
        "head new: its tool": _new_heads(body, tools=new_tool),
        "head new: a system prompt": _new_heads(body, messages=new_prompt),
        "head new: metadata": _new_heads(body, metadata={"trace": "t-NUMBER"}),
    }
    times = _timed(raw, {**jobs, **_theirs(raw)})
    bars = {name: 35 for name in jobs if name.startswith("head new")}
    ratios = _against(times, {"head known": 3, **bars})
    show(f"Five messages and a tool ({len(raw):,} bytes)", times, ratios)
    return ratios


def _tools() -> list[Ratio]:
    ratios: list[Ratio] = []
    for title, body, bar in (
        ("Ten tools, five messages", with_tools(1, 10, 30), 2.5),
        ("A coding agent's body", with_tools(5, 22, 900), 1),
    ):
        raw = _bytes(body)
        times = _timed(raw, {"head known": _ours(raw), **_theirs(raw)})
        found = _against(times, {"head known": bar})
        show(f"{title} ({len(raw):,} bytes)", times, found)
        ratios += found
    return ratios


def _other_sources() -> list[Ratio]:
    """The long conversation from every dialect to Chat."""
    ratios: list[Ratio] = []
    for source in ("anthropic", "gemini", "openai-responses", "ollama"):
        made = dragoman.translate(conversations.body(), source="openai-chat", target=source)
        raw, path = made.to_bytes(), made.path if source == "gemini" else None
        job = _ours(raw, "openai-chat", source, path=path)
        times = _timed(raw, {f"{source} to Chat": job})
        found = _against(times, {"anthropic to Chat": 2.5})
        show(f"1,000 messages from {source}", times, found)
        ratios += found
    return ratios


def _same() -> list[Ratio]:
    raw = conversations.body()
    jobs = {
        "repair=False": _ours(raw, "openai-chat", repair=False),
        "with the survey": _ours(raw, "openai-chat"),
        "to a host that is known": _ours(raw, "openai:gpt-5.1"),
    }
    times = _timed(raw, jobs)
    ratios = _against(times, {"repair=False": 0.3, "with the survey": 1.3})
    show("1,000 messages in the same dialect", times, ratios)
    return ratios


def _growing() -> list[Ratio]:
    body = conversations.chat()
    before, after = (_bytes({**body, "messages": body["messages"][:n]}) for n in (997, 1001))
    prefixes.remember_conversations()
    try:
        dragoman.translate(before, source="openai-chat", target=_TO)
        times = _timed(after, {"4 new messages on 1,000": _as_if_new(_ours(after))})
    finally:
        prefixes.forget_conversations()
    ratios = _against(times, {"4 new messages on 1,000": 0.35})
    show("A conversation that grows, remembered", times, ratios)
    return ratios


def _as_if_new(job: Job) -> Job:
    """The job, each time with what is remembered now, whatever it adds to it."""
    kept = prefixes.conversations()
    assert kept is not None
    held = kept._kept  # pyright: ignore[reportPrivateUsage] - nobody else goes back
    known = {key: (fields, list(alike)) for key, (fields, alike) in held.items()}

    def again() -> object:
        held.clear()
        held.update({key: (fields, list(alike)) for key, (fields, alike) in known.items()})
        return job()

    return again


def odd_bodies() -> Iterator[tuple[str, dict[str, Any]]]:
    """Requests that leave the lane: at once, and at the very end."""
    for title, rounds in (("five messages", 1), ("1,000 messages", conversations.ROUNDS)):
        body = conversations.chat(rounds)
        first, *rest, last = body["messages"]
        odd = [{**message, "odd": 1} for message in (first, *rest)]
        yield f"{title}, odd at the beginning and on", {**body, "messages": [*odd, last]}
        yield f"{title}, odd at the end", {**body, "messages": [first, *rest, {**last, "odd": 1}]}


def _leaving() -> list[Ratio]:
    times: dict[str, float] = {}
    ratios: list[Ratio] = []
    for title, body in odd_bodies():
        job = _ours(_bytes(body))
        found = seconds({"on": job, "off": _switched_off(job)}, rounds=40, clock=thread_time)
        times[title] = found["on"]
        ratios.append(Ratio(f"{title}, against the lane off", found["on"] / found["off"], 1.05))
    show("Requests that leave the lane", times, ratios)
    return ratios


def _switched_off(job: Job) -> Job:
    def general() -> object:
        with switch.off():
            return job()

    return general


def _memory() -> list[Ratio]:
    """The peak of a request of more than a megabyte."""
    raw = conversations.body(2_000)
    job = _ours(raw)
    HEADS.clear()
    job()
    tracemalloc.start()
    job()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    ratios = [Ratio("peak of memory, against the body", peak / len(raw), 5)]
    show(f"Memory for 8,000 messages ({len(raw):,} bytes)", {}, ratios)
    return ratios
