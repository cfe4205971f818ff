"""OpenAI's SDK reads our streams as it reads the plain body."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
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
from tests.wire.loopback import answering
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


Ask = Callable[[bytes, bytes], tuple[Any, Any]]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Reads the plain and the streamed response, both given as bytes, with the SDK."""
    with (
        answering() as answers,
        openai.OpenAI(base_url=f"{answers.address}/v1", api_key="none", max_retries=0) as client,
    ):

        def both(plain: bytes, streamed: bytes) -> tuple[Any, Any]:
            answers.plain, answers.streamed = plain, streamed
            whole = client.chat.completions.create(model="m", messages=_PROMPT)
            with client.chat.completions.stream(
                model="m", messages=_PROMPT, stream_options={"include_usage": True}
            ) as pieces:
                pieces.until_done()
                return whole, pieces.current_completion_snapshot

        yield both


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
