"""Requests whose heads never come twice, against orjson on the same bytes: no cache helps.

Long conversations with and without something odd, changed tools, and decoding and encoding alone.
Each body differs from all before it in the name of its model, so that nothing is remembered.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from time import thread_time
from typing import Any

import orjson

import dragoman
from benchmarks import conversations
from benchmarks.clock import seconds
from benchmarks.report import Ratio, show

_BASE = "orjson, loads and dumps of the same bytes"
_numbers = count(100_000)
Body = dict[str, Any]


def plain() -> list[Ratio]:
    """All of them."""
    return [*_targets(), *_odd(), *_tools(), *_parts()]


def _fresh(body: Body) -> tuple[bytes, Callable[[], bytes]]:
    """The body, and a function that gives it with another model each time."""
    raw = orjson.dumps({**body, "model": "m-NUMBER"})
    before, after = raw.split(b"m-NUMBER")
    return raw, lambda: b"%bm-%d%b" % (before, next(_numbers), after)


def _ratios(title: str, raw: bytes, jobs: dict[str, Any], bars: dict[str, float]) -> list[Ratio]:
    timed = {_BASE: lambda: orjson.dumps(orjson.loads(raw)), **jobs}
    times = seconds(timed, rounds=30, per_round=0.002, clock=thread_time)
    found = [
        Ratio(f"{name}, against orjson", times[name] / times[_BASE], bars.get(name))
        for name in jobs
    ]
    show(f"{title} ({len(raw):,} bytes), never the same", times, found)
    return found


def _to(target: str, made: Callable[[], bytes]) -> Callable[[], object]:
    return lambda: dragoman.translate(made(), source="openai-chat", target=target).to_bytes()


def _targets() -> list[Ratio]:
    bars = {"anthropic": 2.8, "openai-responses": 2.8, "ollama": 2.8, "gemini": 3.2}
    raw, made = _fresh(conversations.chat())
    ratios = _ratios("1,000 messages", raw, {name: _to(name, made) for name in bars}, bars)
    raw, made = _fresh(conversations.chat(1))
    small = {name: _to(name, made) for name in bars}
    return [*ratios, *_ratios("Five messages and a tool", raw, small, dict.fromkeys(bars, 4.2))]


def _odd() -> list[Ratio]:
    """Something that only the general path understands, in a long conversation."""
    ratios: list[Ratio] = []
    picture = {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}
    for title, bar in (("an odd message", 4), ("a picture", 4), ("an answer at the end", 4)):
        body = conversations.chat()
        asked = body["messages"][500]
        if title == "an odd message":
            asked["odd"] = 1
        elif title == "a picture":
            asked["content"] = [{"type": "text", "text": asked["content"]}, picture]
        else:
            body["messages"].pop()
        raw, made = _fresh(body)
        ratios += _ratios(f"1,000 messages, {title}", raw, {title: _to("anthropic", made)},
                          {title: bar})  # fmt: skip
    return ratios


def _tools() -> list[Ratio]:
    """Twenty tools, each of which changes every time."""
    body = conversations.chat(1)
    (tool,) = body["tools"]
    text = {"type": "string", "description": "What it is about."}
    schema = {
        "type": "object",
        "properties": {
            **tool["function"]["parameters"]["properties"],
            **dict.fromkeys("abcdef", text),
        },
        "required": ["city"],
    }
    names = ["weather", *(f"weather_{number}" for number in range(1, 20))]
    about = "The weather in a city, or at a place, as of NUMBER."
    body["tools"] = [
        {"type": "function", "function": {"name": name, "description": about, "parameters": schema}}
        for name in names
    ]
    raw = orjson.dumps(body)
    pieces = raw.split(b"NUMBER")

    def made() -> bytes:
        return (b"%d" % next(_numbers)).join(pieces)

    return _ratios("20 changed tools", raw, {"changed tools": _to("anthropic", made)},
                   {"changed tools": 2.5})  # fmt: skip


def _parts() -> list[Ratio]:
    """Decoding and encoding alone."""
    chat, claude = dragoman.dialect("openai-chat"), dragoman.dialect("anthropic")
    raw, made = _fresh(conversations.chat())
    request = chat.decode_request(raw)
    body = conversations.chat()
    for message in body["messages"][5::10]:
        message["odd"] = 1
    odd = orjson.dumps(body)
    return _ratios(
        "1,000 messages",
        raw,
        {
            "decoding": lambda: chat.decode_request(made()),
            "decoding, every tenth odd": lambda: chat.decode_request(odd),
            "encoding values": lambda: claude.encode_request(request).to_bytes(),
        },
        {"decoding": 1.8, "decoding, every tenth odd": 3.5, "encoding values": 2},
    )
