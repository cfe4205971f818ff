"""OpenAI's SDK reads our streams as it reads the plain body."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
    StreamError,
    UsageUpdate,
)
from dragoman.model.parts import Origin, Refusal, Text, Thinking
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.openai_chat.codec import DIALECT
from tests.wire.openai_chat.streams import PAIRS, body_of, decoded, encoded, stream

openai = pytest.importorskip("openai")

_PROMPT: list[Any] = [{"role": "user", "content": "hi"}]
_START = ResponseStart(id="msg_1", model="m", created_at=7.0, origin=Origin(dialect="anthropic"))
_END: list[Event] = [UsageUpdate(Usage(input=3, output=4)), ResponseEnd()]

CONVERSATIONS: dict[str, list[Event]] = {
    # Its accumulator supports only strings and function calls.
    **{
        name: decoded([stream(name)])[1]
        for name in sorted(PAIRS)
        if name not in ("thinking in the content", "unknown kind of call", "custom tool")
    },
    "text elsewhere": [
        _START, PartStart(0, Thinking("")), PartDelta(0, "Hm."), PartStop(0),
        PartStart(1, Text("")), PartDelta(1, "Grüezi "), PartDelta(1, "mitenand"), PartStop(1),
        ChoiceFinish(FinishReason.STOP, "end_turn"), *_END,
    ],
    "calls elsewhere": [
        _START, PartStart(0, Text("Let me look.")), PartStop(0),
        PartStart(1, ToolCall("toolu_a", "weather", input={})),
        PartStart(2, ToolCall("toolu_b", "now", input={})),
        PartDelta(1, '{"city":'), PartDelta(1, ' "Basel"}'), PartStop(1), PartStop(2),
        ChoiceFinish(FinishReason.TOOL_CALLS, "tool_use"), *_END,
    ],
    "whole calls elsewhere": [
        _START, PartStart(0, ToolCall("a", "f", input={"x": 1})), PartStop(0),
        PartStart(1, ToolCall("b", "g", input={"y": [2]})), PartStop(1),
        ChoiceFinish(FinishReason.STOP, "STOP"), *_END,
    ],
    "pieces of calls elsewhere": [
        _START, ToolCallDelta(0, "a", "f", "{"), ToolCallDelta(1, "b", "g", '{"x"'),
        ToolCallDelta(0, None, None, "}"), ToolCallDelta(1, None, None, ": 1}"),
        ChoiceFinish(FinishReason.TOOL_CALLS), *_END,
    ],
    "refusal elsewhere": [
        _START, PartStart(0, Refusal("No")), PartDelta(0, "."), PartStop(0),
        ChoiceFinish(FinishReason.REFUSAL, "refusal"), *_END,
    ],
}  # fmt: skip


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    plain = b""
    streamed = b""


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, _Server)
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        body = self.server.streamed if asked.get("stream") else self.server.plain
        kind = "text/event-stream" if asked.get("stream") else "application/json"
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
        """Logs nothing."""


Ask = Callable[[bytes, bytes], tuple[Any, Any]]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Reads the plain and the streamed response, both given as bytes, with the SDK."""
    server = _Server(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{server.server_address[1]}/v1"
    with openai.OpenAI(base_url=address, api_key="none", max_retries=0) as client:

        def both(plain: bytes, streamed: bytes) -> tuple[Any, Any]:
            server.plain, server.streamed = plain, streamed
            whole = client.chat.completions.create(model="m", messages=_PROMPT)
            with client.chat.completions.stream(
                model="m", messages=_PROMPT, stream_options={"include_usage": True}
            ) as pieces:
                pieces.until_done()
                return whole, pieces.current_completion_snapshot

        yield both
    server.shutdown()
    server.server_close()
    thread.join()


def _seen(completion: Any) -> dict[str, Any]:
    """The fields that a client reads."""
    return {
        "head": (completion.id, completion.created, completion.model),
        "usage": completion.usage and completion.usage.model_dump(exclude_none=True),
        "choices": [
            {
                "finish": choice.finish_reason,
                "content": choice.message.content or None,
                "refusal": choice.message.refusal,
                "audio": getattr(choice.message, "audio", None) is not None,
                "thinking": getattr(choice.message, "reasoning_content", None)
                or getattr(choice.message, "reasoning", None),
                "logprobs": choice.logprobs and len(choice.logprobs.content or ()),
                "function_call": choice.message.function_call is not None,
                "calls": [
                    (call.id, call.type, call.function.name, call.function.arguments)
                    for call in choice.message.tool_calls or ()
                ],
            }
            for choice in completion.choices
        ],
    }


@pytest.mark.parametrize("name", sorted(CONVERSATIONS))
def test_sdk_reads_our_stream_like_the_plain_body(name: str, ask: Ask) -> None:
    """The SDK's accumulator gives the same message as the plain body."""
    events = CONVERSATIONS[name]
    accumulator = MessageAccumulator()
    accumulator.extend(events)
    body = body_of(accumulator.response)
    for choice in body["choices"]:  # a field of the plain body that chunks leave out if null
        choice.setdefault("logprobs", None)
    whole, folded = ask(json.dumps(body).encode(), encoded(events))
    assert _seen(folded) == _seen(whole)


def test_sdk_raises_on_a_broken_stream(ask: Ask) -> None:
    """An error or a truncated stream raises in the SDK (G1)."""
    plain = DIALECT.encode_response(decoded([stream("text")])[0].response).to_bytes()
    events = decoded([stream("text")])[1]
    for broken in ([*events[:3], StreamError("busy")], events[:3]):
        with pytest.raises(openai.APIError):
            ask(plain, encoded(broken))
