"""Test streams, each with the plain body of the same response."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from dragoman.model.events import Event
from dragoman.model.responses import Response
from dragoman.wire.ollama.codec import DIALECT
from tests.wire import streams
from tests.wire.streams import Failure, Streams, decoding

TIME = "2025-10-17T23:14:07.414671123Z"
METRICS = {"total_duration": 9, "load_duration": 1, "prompt_eval_count": 26,
           "prompt_eval_duration": 2, "eval_count": 5, "eval_duration": 3}  # fmt: skip


def line(value: Any) -> bytes:
    """One line of a stream."""
    return json.dumps(value).encode() + b"\n"


def chunk(**message: Any) -> dict[str, Any]:
    """A chunk with a message delta."""
    whole = {"role": "assistant", "content": "", **message}
    return {"model": "m", "created_at": TIME, "message": whole, "done": False}


def done(reason: str | None = "stop", **fields: Any) -> dict[str, Any]:
    """The last chunk."""
    why = {} if reason is None else {"done_reason": reason}
    return {**chunk(), "done": True, **why, **METRICS, **fields}


def plain(reason: str | None = "stop", **message: Any) -> dict[str, Any]:
    """The plain body of a response."""
    fields = message.pop("fields", {})
    return {**done(reason, **fields), "message": chunk(**message)["message"]}


def call(name: str, index: int, **arguments: Any) -> dict[str, Any]:
    """A complete call."""
    function = {"index": index, "name": name, "arguments": arguments}
    return {"id": f"call_{index}", "function": function}


A, B = call("weather", 0, city="Basel"), call("weather", 1, city="Bern")
LOGPROB = {"token": "x", "logprob": -0.5}

PAIRS: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "text": (
        [chunk(content="Grüezi "), chunk(content="mitenand"), done()],
        plain(content="Grüezi mitenand"),
    ),
    "thinking": (
        [chunk(thinking="Hm"), chunk(thinking="."), chunk(content="Hi"), done()],
        plain(content="Hi", thinking="Hm."),
    ),
    "thinking again": (
        [chunk(thinking="a"), chunk(content="x"), chunk(thinking="b"), chunk(content="y"), done()],
        plain(content="xy", thinking="ab"),
    ),
    "both at once": (
        [chunk(thinking="a", content="x", tool_calls=[A]), done()],
        plain(content="x", thinking="a", tool_calls=[A]),
    ),
    "calls": (
        [chunk(tool_calls=[A]), chunk(tool_calls=[B]), done()],
        plain(tool_calls=[A, B]),
    ),
    "a call before the text": (
        [chunk(content="x"), chunk(tool_calls=[A]), chunk(content="y"), done()],
        plain(content="xy", tool_calls=[A]),
    ),
    "calls in the last line": (
        [chunk(content="x"), {**done(), "message": chunk(tool_calls=[A, B])["message"]}],
        plain(content="x", tool_calls=[A, B]),
    ),
    "older server": (
        [chunk(tool_calls=[{"function": {"name": "f", "arguments": {}}}]), done(None)],
        plain(None, tool_calls=[{"function": {"name": "f", "arguments": {}}}]),
    ),
    "cut off": ([chunk(content="x"), done("length")], plain("length", content="x")),
    "loaded": ([done("load")], plain("load")),
    "probabilities": (
        [{**chunk(content="x"), "logprobs": [LOGPROB]}, {**chunk(), "logprobs": [LOGPROB]}, done()],
        plain(content="x", fields={"logprobs": [LOGPROB, LOGPROB]}),
    ),
    "elsewhere": (
        [{**chunk(content="x"), "remote_model": "r"}, done(remote_model="r", remote_host="h")],
        plain(content="x", fields={"remote_model": "r", "remote_host": "h"}),
    ),
    "odd fields": (
        [chunk(content="x", images=None), done()],
        plain(content="x", images=None),
    ),
    "picture": (
        [chunk(images=["iVBORw0KGgo="]), done()],
        plain(images=["iVBORw0KGgo="]),
    ),
    "malformed call": (
        [chunk(tool_calls=[{"odd": 1}]), done()],
        plain(tool_calls=[{"odd": 1}]),
    ),
}


def stream(name: str) -> bytes:
    """The stream of that name."""
    return b"".join(map(line, PAIRS[name][0]))


decoded = decoding(DIALECT)


def encoded(events: Iterable[Event]) -> bytes:
    """Encodes the events as a stream."""
    encoder = DIALECT.stream_encoder()
    return b"".join([*map(encoder.feed, events), encoder.close()])


def lines(written: bytes) -> list[dict[str, Any]]:
    """The lines of a stream."""
    return [json.loads(found) for found in written.splitlines()]


# --- for the tests of all dialects


def _ended(stream: bytes, *, may_be_odd: bool = False) -> str:
    found = lines(stream)
    if "error" not in found[-1]:
        assert found[-1]["done"] or may_be_odd
        return "complete"
    assert may_be_odd or not any(one.get("done") for one in found)
    return "failed"


def _said(response: Response) -> dict[str, Any]:
    """Without generated ids; an older server's missing reason is `stop`."""
    document = streams.said(response)
    for choice in document.get("choices", ()):
        choice.setdefault("finish_raw", "stop")
    return document


def _failure(error: Any, message: str, status: int | None = None) -> Failure:
    again = json.dumps(error, separators=(",", ":")).encode()
    stream = b"".join(map(line, [chunk(content="x"), error, done()]))
    return Failure(stream, message, None, status, [again], text="x")


_BODIES = {name: body for name, (_, body) in PAIRS.items()}
_FRAMES = {name: chunks for name, (chunks, _) in PAIRS.items()}
TABLE = {"ollama": Streams(
    dialect=DIALECT,
    bodies=_BODIES,
    frames=_FRAMES,
    written=lambda frames: b"".join(map(line, frames)),
    encoder=DIALECT.stream_encoder,
    ended=_ended,
    said=_said,
    last=[b'"done":true', b'"done": true'],
    failures={
        "text": _failure({"error": "boom"}, "boom"),
        "object": _failure({"error": {"a": 1}, "status": 500}, "", 500),
    },
    in_pieces=(
        _FRAMES["text"],
        "ResponseStart PartStart PartDelta PartDelta PartStop UsageUpdate ChoiceFinish ResponseEnd",
        ["Grüezi ", "mitenand"],
    ),
    words=["stop", "assistant", "tool", "load", "\ud800"],
    keys=["message", "role", "content", "thinking", "images", "tool_calls", "function", "name",
          "arguments", "done", "done_reason", "eval_count", "logprobs", "error", "x"],
    is_sse=False,
    order="other",
    generated=["older server"],
    encoded_as={"older server": {**_BODIES["older server"], "done_reason": "stop"}},
)}  # fmt: skip
