"""Unusual streams: generated from the SDKs' types, then spliced, interleaved and corrupted."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from functools import cache
from typing import Any

from tests.sdk_types.hosts import Wire
from tests.sdk_types.streams import STREAMS

_STEP = 11  # uses every so many generated streams
_BESIDES = {
    "openai-responses": ({"type": "response.zebra.delta", "delta": "z", "output_index": 0},
                         {"type": "keepalive"}),
    "anthropic": ({"type": "ping"}, {"type": "zebra", "x": [1]},
                  {"type": "content_block_delta", "index": 0, "delta": {"type": "z_delta"}}),
    "openai-chat": ({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
                    {"choices": [{"index": 1, "delta": {"content": "other"}}]},
                    {"choices": [{"index": 0, "delta": {"content": "z", "zebra": {"a": 1}}}]}),
    "gemini": ({"usageMetadata": {"promptTokenCount": 3}},
               {"candidates": [{"index": 1, "content": {"parts": [{"text": "other"}]}}]},
               {"candidates": [{"content": {"parts": [{"text": "p"}, {"functionCall":
                               {"name": "f", "args": {"a": 1}}}]}}]}),
    "ollama": ({"message": {"role": "assistant", "content": "z", "zebra": 1}, "done": False},
               {"message": {"role": "assistant", "content": "", "tool_calls": [
                   {"function": {"name": "f", "arguments": {"a": 1}}}]}, "done": False}),
}  # fmt: skip
_ERRORS: dict[str, Wire] = {
    "openai-responses": {"type": "error", "code": "server_error", "message": "it broke"},
    "anthropic": {"type": "error", "error": {"type": "overloaded_error", "message": "it broke"}},
    "openai-chat": {"error": {"message": "it broke", "type": "server_error", "code": None}},
    "gemini": {"error": {"code": 503, "message": "it broke", "status": "UNAVAILABLE"}},
    "ollama": {"error": "it broke"},
}
_INDEX = {"openai-responses": "output_index", "anthropic": "index"}


@cache
def _pool(dialect: str) -> list[list[Wire]]:
    sources = [each for each in STREAMS if each.source.dialect == dialect]
    installed = [each for each in sources if each.source.is_installed]
    return [stream.events for each in installed for stream in each.streams(_STEP)]


def spliced(dialect: str, seed: int) -> bytes:
    """A stream, in one of its possible framings."""
    rng = random.Random(seed)
    first, *body, last = deepcopy(rng.choice(_pool(dialect)))
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        more = _shifted(deepcopy(rng.choice(_pool(dialect)))[1:-1], body, _INDEX.get(dialect))
        body = _interleaved(rng, body, more) if rng.random() < 0.5 else body + more
    for _ in range(rng.choice((0, 0, 1, 2))):
        body.insert(rng.randint(0, len(body)), deepcopy(rng.choice(_BESIDES[dialect])))
    return _written(_disturbed(rng, [first, *body, last], dialect), dialect, rng)


def _shifted(events: list[Wire], before: list[Wire], key: str | None) -> list[Wire]:
    """The events, with indices after those of others."""
    if key is not None:
        count = 1 + max((e[key] for e in before if type(e.get(key)) is int), default=-1)
        for event in events:
            if type(event.get(key)) is int:
                event[key] += count
    return events


def _interleaved(rng: random.Random, one: list[Wire], other: list[Wire]) -> list[Wire]:
    places = set(rng.sample(range(len(one) + len(other)), len(one)))
    ones, others = iter(one), iter(other)
    return [next(ones if n in places else others) for n in range(len(one) + len(other))]


def _disturbed(rng: random.Random, events: list[Wire], dialect: str) -> list[Wire]:
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        at, other = rng.randrange(len(events)), rng.randrange(len(events))
        match rng.randrange(5):
            case 0:
                events[at], events[other] = events[other], events[at]
            case 1:
                events.insert(at, deepcopy(events[at]))
            case 2:
                events.insert(at, deepcopy(_ERRORS[dialect]))
            case 3:
                events = events[: at + 1]
            case _:
                events = events[:at] + events[at + 1 :] or events
    return events


def _written(events: list[Wire], dialect: str, rng: random.Random) -> bytes:
    end = rng.choice(("\n", "\n", "\n", "\r\n", "\r"))
    if dialect == "ollama":
        end = "\n" if end == "\r" else end
        return "".join(json.dumps(event) + end for event in events).encode()
    lines = ["\ufeff"] if rng.random() < 0.1 else []
    for event in events:
        if rng.random() < 0.1:
            lines.append(f": a comment{end}")
        if "type" in event:
            lines.append(f"event: {event['type']}{end}")
        indent: Any = 1 if rng.random() < 0.1 else None
        lines += [f"data: {line}{end}" for line in json.dumps(event, indent=indent).split("\n")]
        lines.append(end)
    if dialect == "openai-chat" and rng.random() < 0.9:
        lines.append(f"data: [DONE]{end}{end}")
    return "".join(lines).encode()
