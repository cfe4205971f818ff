"""Streams that we write, read by OpenAI's SDK over a loopback server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import dragoman
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
from dragoman.wire.openai_responses.tools_client import client_tool_of
from tests.corpus import Corpus
from tests.wire import recorded
from tests.wire.loopback import answering
from tests.wire.openai_responses.streams import BODIES, STREAMS, TABLE, answered, decoded

openai: Any = pytest.importorskip("openai")

_START = ResponseStart(id="msg_1", model="m", created_at=7.0, origin=Origin(dialect="anthropic"))
_END: list[Event] = [UsageUpdate(Usage(input=3, output=4)), ResponseEnd()]
_ENDS = ("response.completed", "response.incomplete", "response.failed")

ELSEWHERE: dict[str, list[Event]] = {
    "text": [
        _START, PartStart(0, Thinking("")), PartDelta(0, "Hm."), PartStop(0),
        PartStart(1, Text("")), PartDelta(1, "Grüezi "), PartDelta(1, "mitenand"), PartStop(1),
        ChoiceFinish(FinishReason.STOP, "end_turn"), *_END,
    ],
    "calls": [
        _START, PartStart(0, Text("Let me look.")), PartStop(0),
        PartStart(1, ToolCall("toolu_a", "weather", input={})),
        PartStart(2, ToolCall("toolu_b", "now", input={})),
        PartDelta(1, '{"city":'), PartDelta(1, ' "Basel"}'), PartStop(1), PartStop(2),
        ChoiceFinish(FinishReason.TOOL_CALLS, "tool_use"), *_END,
    ],
    "pieces of calls": [
        _START, ToolCallDelta(0, "a", "f", "{"), ToolCallDelta(1, "b", "g", '{"x"'),
        ToolCallDelta(0, None, None, "}"), ToolCallDelta(1, None, None, ": 1}"),
        ChoiceFinish(FinishReason.TOOL_CALLS), *_END,
    ],
    "refusal": [
        _START, PartStart(0, Refusal("No")), PartDelta(0, "."), PartStop(0),
        ChoiceFinish(FinishReason.REFUSAL, "refusal"), *_END,
    ],
    "limit": [
        _START, PartStart(0, Text("1, 2")), ChoiceFinish(FinishReason.LENGTH, "max_tokens"), *_END,
    ],
}  # fmt: skip


Read = Callable[[bytes], list[Any]]


@pytest.fixture(scope="module", name="read")
def _read() -> Iterator[Read]:
    """Reads a stream with the SDK's accumulating helper and returns its events."""
    with (
        answering() as answers,
        openai.OpenAI(base_url=f"{answers.address}/v1", api_key="none", max_retries=0) as client,
    ):

        def events(stream: bytes) -> list[Any]:
            answers.streamed = stream
            with client.responses.stream(model="m", input="hi") as found:
                return list(found)

        yield events


def _snapshot(events: Sequence[Any]) -> tuple[str, list[str]]:
    """The accumulated text and arguments, item by item."""
    texts: dict[tuple[int, int], str] = {}
    calls: dict[int, str] = {}
    for event in events:
        if event.type == "response.output_item.added" and event.item.type == "function_call":
            calls[event.output_index] = ""
        elif event.type == "response.output_text.delta":
            texts[event.output_index, event.content_index] = event.snapshot
        elif event.type == "response.function_call_arguments.delta":
            calls[event.output_index] = event.snapshot
    return "".join(texts[key] for key in sorted(texts)), [calls[key] for key in sorted(calls)]


def _check(events: Sequence[Any], response: dragoman.Response) -> None:
    """Asserts that the SDK's accumulated and final results equal the response."""
    text, calls = _snapshot(events)
    expected = "".join(part.text for part in response.message.parts if isinstance(part, Text))
    assert text == expected
    finish = response.choices[0].finish
    nothing = "" if finish is not None and finish.is_cut_off else "{}"
    assert calls == [
        call.raw_arguments or nothing for call in response.tool_calls if _is_plain(call)
    ]
    last = events[-1].response
    assert events[-1].type in _ENDS
    assert last.output_text == expected
    found = [item for item in last.output if item.type == "function_call"]
    assert [(call.call_id, call.name) for call in found] == [
        (call.id, call.name) for call in response.tool_calls if _is_plain(call)
    ]
    assert [item.type for item in last.output] == [
        event.item.type for event in events if event.type == "response.output_item.added"
    ]
    if response.usage is not None:
        assert last.usage.input_tokens == response.usage.total_input
        assert last.usage.output_tokens == response.usage.total_output


def _is_plain(call: ToolCall) -> bool:
    is_clients = client_tool_of(call) is not None  # its item has another type
    return call.kind == "function" and not is_clients


_REFUSED = {"one id twice", "unknown things"}
"""What the SDK's helper won't have: calls that share an id, parts that it does not know."""


@pytest.mark.parametrize("name", sorted(set(BODIES) - _REFUSED))
def test_sdk_reads_our_streams(name: str, read: Read) -> None:
    """For each test body the SDK's final response equals the plain body."""
    decoder, events = decoded(STREAMS[name])
    found = read(answered(events))
    _check(found, decoder.response)
    last = found[-1].response.model_dump(exclude_unset=True, warnings=False)
    for item in last["output"]:  # fields that the SDK adds after parsing
        item.pop("parsed_arguments", None)
        for part in item.get("content") or ():
            part.pop("parsed", None)
    assert last == BODIES[name]


@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_sdk_reads_streams_of_other_providers(name: str, read: Read) -> None:
    """Another provider's text, thinking, interleaved calls and limits are accumulated correctly."""
    events = ELSEWHERE[name]
    folded = dragoman.MessageAccumulator()
    folded.extend(events)
    found = read(answered(events))
    _check(found, folded.response)
    is_limit = name == "limit"
    assert found[-1].type == ("response.incomplete" if is_limit else "response.completed")
    thinking = folded.response.message.thinking
    shown = [event.delta for event in found if event.type == "response.reasoning_text.delta"]
    assert "".join(shown) == (thinking or "")


def test_sdk_sees_a_broken_stream_as_failed(read: Read) -> None:
    """An error or a truncated stream is a failed response for the SDK, or raises (G1)."""
    events = ELSEWHERE["text"]
    for broken in ([*events[:5], StreamError("busy", None, 529)], events[:5], events[:-1], []):
        found = read(answered(broken))
        assert found[-1].type == "response.failed"
        assert found[-1].response.status == "failed"
        assert found[-1].response.error.code == "server_error"
    wire = b'event: error\ndata: {"type": "error", "error": {"message": "busy"}}\n\n'
    _, events = decoded(STREAMS["text"][:2000].rpartition(b"event:")[0] + wire)
    with pytest.raises(openai.APIError):
        read(answered(events))


@pytest.mark.corpus
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # for newer fields
@pytest.mark.parametrize("dialect", ["anthropic", "openai-chat", "openai-responses"])
def test_sdk_reads_recorded_streams(corpus: Corpus, dialect: str, read: Read) -> None:
    """Recorded streams of any dialect, encoded in this one, give the same answer."""
    count = 0
    faults = TABLE["openai-responses"].recorded_faults
    for file, _, decoder, events in recorded.decoded(corpus, dialect):
        is_sound = decoder.is_complete and faults.get(file) != "corrected"
        if is_sound and decoder.response.choices:
            count += 1
            _check(read(answered(events)), decoder.response)
    assert count > 30
