"""Test streams, each with the plain body of the same response."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from dragoman.model.events import Event
from dragoman.wire.ollama.codec import DIALECT
from dragoman.wire.streams import StreamDecoder

TIME = "2025-10-17T23:14:07.414671123Z"
METRICS = {"total_duration": 9, "load_duration": 1, "prompt_eval_count": 26,
           "prompt_eval_duration": 2, "eval_count": 5, "eval_duration": 3}  # fmt: skip


def line(value: Any) -> bytes:
    """One line of a stream."""
    return json.dumps(value).encode() + b"\n"


def said(**message: Any) -> dict[str, Any]:
    """A chunk with a message delta."""
    whole = {"role": "assistant", "content": "", **message}
    return {"model": "m", "created_at": TIME, "message": whole, "done": False}


def done(reason: str | None = "stop", **fields: Any) -> dict[str, Any]:
    """The last chunk."""
    why = {} if reason is None else {"done_reason": reason}
    return {**said(), "done": True, **why, **METRICS, **fields}


def plain(reason: str | None = "stop", **message: Any) -> dict[str, Any]:
    """The plain body of a response."""
    fields = message.pop("fields", {})
    return {**done(reason, **fields), "message": said(**message)["message"]}


def call(name: str, index: int, **arguments: Any) -> dict[str, Any]:
    """A complete call."""
    function = {"index": index, "name": name, "arguments": arguments}
    return {"id": f"call_{index}", "function": function}


A, B = call("weather", 0, city="Basel"), call("weather", 1, city="Bern")
LOGPROB = {"token": "x", "logprob": -0.5}

PAIRS: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "text": (
        [said(content="Grüezi "), said(content="mitenand"), done()],
        plain(content="Grüezi mitenand"),
    ),
    "thinking": (
        [said(thinking="Hm"), said(thinking="."), said(content="Hi"), done()],
        plain(content="Hi", thinking="Hm."),
    ),
    "thinking again": (
        [said(thinking="a"), said(content="x"), said(thinking="b"), said(content="y"), done()],
        plain(content="xy", thinking="ab"),
    ),
    "both at once": (
        [said(thinking="a", content="x", tool_calls=[A]), done()],
        plain(content="x", thinking="a", tool_calls=[A]),
    ),
    "calls": (
        [said(tool_calls=[A]), said(tool_calls=[B]), done()],
        plain(tool_calls=[A, B]),
    ),
    "a call before the text": (
        [said(content="x"), said(tool_calls=[A]), said(content="y"), done()],
        plain(content="xy", tool_calls=[A]),
    ),
    "calls in the last line": (
        [said(content="x"), {**done(), "message": said(tool_calls=[A, B])["message"]}],
        plain(content="x", tool_calls=[A, B]),
    ),
    "older server": (
        [said(tool_calls=[{"function": {"name": "f", "arguments": {}}}]), done(None)],
        plain(None, tool_calls=[{"function": {"name": "f", "arguments": {}}}]),
    ),
    "cut off": ([said(content="x"), done("length")], plain("length", content="x")),
    "loaded": ([done("load")], plain("load")),
    "probabilities": (
        [{**said(content="x"), "logprobs": [LOGPROB]}, {**said(), "logprobs": [LOGPROB]}, done()],
        plain(content="x", fields={"logprobs": [LOGPROB, LOGPROB]}),
    ),
    "elsewhere": (
        [{**said(content="x"), "remote_model": "r"}, done(remote_model="r", remote_host="h")],
        plain(content="x", fields={"remote_model": "r", "remote_host": "h"}),
    ),
    "odd fields": (
        [said(content="x", images=None), done()],
        plain(content="x", images=None),
    ),
    "picture": (
        [said(images=["iVBORw0KGgo="]), done()],
        plain(images=["iVBORw0KGgo="]),
    ),
    "malformed call": (
        [said(tool_calls=[{"odd": 1}]), done()],
        plain(tool_calls=[{"odd": 1}]),
    ),
}


def stream(name: str) -> bytes:
    """The stream of that name."""
    return b"".join(map(line, PAIRS[name][0]))


def decoded(pieces: Iterable[bytes]) -> tuple[StreamDecoder, list[Event]]:
    """Decodes these bytes; returns the decoder and the events."""
    decoder = DIALECT.stream_decoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return decoder, [*events, *decoder.close()]


def encoded(events: Iterable[Event]) -> bytes:
    """Encodes the events as a stream."""
    encoder = DIALECT.stream_encoder()
    return b"".join([*map(encoder.feed, events), encoder.close()])


def lines(written: bytes) -> list[dict[str, Any]]:
    """The lines of a stream."""
    return [json.loads(found) for found in written.splitlines()]
