"""Streams from one dialect to another, beside raw JSON: what a gateway does to every event."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from time import thread_time
from typing import Any

import msgspec

import dragoman
from benchmarks import recordings
from benchmarks.clock import seconds as wall_seconds
from benchmarks.report import Ratio, duration, show
from dragoman.wire.lane.passing import PassingStream

seconds = partial(wall_seconds, rounds=25, per_round=0.004, clock=thread_time)

_EVENTS = 500
_BASE = "msgspec, the JSON of the events, kept"
_BARS = {"anthropic": 3.5, "gemini": 4.0, "openai-responses": 5.0}
"""At most so many times the base, for text out of Chat; others may take half as much again."""
_HEAD = {"id": "chatcmpl-9xYz0123456789abcdefghijk", "object": "chat.completion.chunk",
         "created": 1730000000, "model": "gpt-5-2025-08-07", "service_tier": "default",
         "system_fingerprint": "fp_0123456789"}  # fmt: skip


def translating() -> list[Ratio]:
    """Text, thinking and arguments, out of each dialect into others; and streams of four events."""
    ratios: list[Ratio] = []
    for kind in ("text", "tool", "thinking"):
        ratios += _from("openai-chat", kind, chat(_EVENTS, kind))
    for source in ("anthropic", "openai-responses", "gemini"):
        for kind in ("text", "tool", "thinking"):
            pieces = _pieces_of(source, chat(_EVENTS, kind))
            if len(pieces) > _EVENTS:  # Gemini's calls come whole
                ratios += _from(source, kind, pieces)
    _short()
    _passing()
    return ratios


def chat(count: int, kind: str = "text") -> list[bytes]:
    """A stream of Chat, as OpenAI sends it: so many pieces of text, thinking or arguments."""
    makes: dict[str, Callable[[str], dict[str, Any]]] = {
        "text": lambda text: {"content": text},
        "thinking": lambda text: {"reasoning_content": text},
        "tool": lambda text: {"tool_calls": [{"index": 0, "function": {"arguments": text}}]},
    }
    head: dict[str, Any] = {"role": "assistant", "content": "", "refusal": None}
    texts = [f" word{n}" for n in range(count)]
    if kind == "tool":
        call = {"name": "weather", "arguments": ""}
        head = {"role": "assistant", "content": None, "tool_calls": [
            {"index": 0, "id": "call_1", "type": "function", "function": call}]}  # fmt: skip
        texts = ['{"text":"', *texts[2:], '"}']
    deltas = [head, *map(makes[kind], texts)]
    finish = "tool_calls" if kind == "tool" else "stop"
    chunks = [*(_chunk(delta, None) for delta in deltas), _chunk({}, finish)]
    return [*(b"data: %b\n\n" % msgspec.json.encode(chunk) for chunk in chunks),
            b"data: [DONE]\n\n"]  # fmt: skip


def _chunk(delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {**_HEAD, "choices": [choice]}


def translated(source: str, target: str, pieces: Iterable[bytes]) -> bytes:
    """A stream of one dialect in another, as a server of the other would send it."""
    decoder = dragoman.dialect(source).stream_decoder()
    encoder = dragoman.Front(target, dragoman.Request(model="m")).stream()
    written = [encoder.feed_all(decoder.feed(piece)) for piece in pieces]
    return b"".join([*written, encoder.feed_all(decoder.close()), encoder.close()])


def _pieces_of(source: str, pieces: list[bytes]) -> list[bytes]:
    return recordings.pieces(source, translated("openai-chat", source, pieces))


def _from(source: str, kind: str, pieces: list[bytes]) -> list[Ratio]:
    documents = recordings.documents(source, b"".join(pieces))
    targets = [name for name in recordings.DIALECTS if name not in (source, "ollama")]
    jobs: dict[str, Callable[[], object]] = {_BASE: partial(_kept, documents)}
    for target in targets:
        jobs[target] = partial(translated, source, target, [b"".join(pieces)])
        jobs[f"{target}, event by event"] = partial(translated, source, target, pieces)
    count = len(documents)
    times = {name: value / count for name, value in seconds(jobs).items()}
    is_first = (source, kind) == ("openai-chat", "text")
    ratios = [
        Ratio(f"to {target}, against msgspec", times[target] / times[_BASE],
              at_most=_bar(target, is_first=is_first))
        for target in targets
    ]  # fmt: skip
    show(f"{source}, {kind}: {count} events; time for one", times, ratios)
    return ratios


def _bar(target: str, *, is_first: bool) -> float | None:
    bar = _BARS.get(target)
    return bar if bar is None or is_first else bar * 1.5


def _short() -> None:
    """The fixed cost of a stream."""
    pieces = chat(1)
    targets = [name for name in recordings.DIALECTS if name != "openai-chat"]
    times = seconds({name: partial(translated, "openai-chat", name, pieces) for name in targets})
    figures = ", ".join(f"{name} {duration(value)}" for name, value in times.items())
    print(f"\nopenai-chat, a stream of four events, all of it: {figures}")


def _passing() -> None:
    """A stream that goes on as it came."""
    print("\nStreams that pass as they came, their usage found: time for one event")
    for dialect in recordings.DIALECTS:
        pieces = _pieces_of(dialect, chat(_EVENTS))
        took = seconds({"passing": partial(_passed, dialect, pieces)})["passing"]
        print(f"  {dialect:17} {duration(took / len(pieces))}")


def _passed(dialect: str, pieces: list[bytes]) -> object:
    passing = PassingStream(dialect)
    for piece in pieces:
        passing.feed(piece)
    passing.close()
    return passing.usage


def _kept(documents: list[bytes]) -> list[Any]:
    return [msgspec.json.decode(document) for document in documents]
