"""Streams that we write, read by Anthropic's SDK over a loopback server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dragoman.model.events import (
    ChoiceFinish,
    Event,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
    UsageUpdate,
)
from dragoman.model.parts import Origin, Text
from dragoman.model.tools import ToolCallDelta
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.anthropic.codec import DIALECT
from tests.wire.anthropic.streams import BODIES, STREAMS, decoded, encoded
from tests.wire.loopback import Answers, answering

anthropic: Any = pytest.importorskip("anthropic")


@pytest.fixture(name="answers", scope="module")
def _answers() -> Iterator[Answers]:
    with answering() as answers:
        yield answers


@pytest.fixture(name="client")
def _client(answers: Answers) -> Iterator[Any]:
    """The SDK's client, connected to our server."""
    with anthropic.Anthropic(api_key="none", base_url=answers.address, max_retries=0) as client:
        yield client


_BETA_ONLY = {"unknown block", "server tools"}
"""Compaction and MCP, which the other client does not know."""
_ASKED: dict[str, Any] = {
    "model": "m",
    "max_tokens": 10,
    "messages": [{"role": "user", "content": "hi"}],
}


def _both(events: list[Event], messages: Any, answers: Answers) -> tuple[Any, Any]:
    """The SDK's message from the stream, and from the plain response."""
    _, answers.streamed = encoded(events)
    response = decoded(answers.streamed)[0].response
    answers.plain = DIALECT.encode_response(response).to_bytes()
    with messages.stream(**_ASKED) as stream:
        streamed = stream.get_final_message()
    plain = messages.create(**_ASKED)
    return streamed.model_dump(exclude_none=True), plain.model_dump(exclude_none=True)


@pytest.mark.parametrize(
    ("name", "is_beta"),
    [(name, beta) for name in BODIES for beta in (False, True) if beta or name not in _BETA_ONLY],
)
def test_sdk_reads_our_streams(client: Any, answers: Answers, name: str, is_beta: bool) -> None:
    """For each test body the SDK's streamed message equals the plain one."""
    messages = client.beta.messages if is_beta else client.messages
    streamed, plain = _both(decoded(STREAMS[name])[1], messages, answers)
    for message in (streamed, plain):  # fields that the SDK adds after parsing
        for block in message["content"]:
            block.pop("parsed_output", None)
    assert streamed == plain


def test_sdk_reads_streams_of_other_providers(client: Any, answers: Answers) -> None:
    """Another provider's interleaved calls with invalid arguments give the same message."""
    events: list[Event] = [
        ResponseStart(id="chatcmpl-1", model="gpt", origin=Origin(dialect="openai-chat")),
        PartStart(0, Text("")),
        PartDelta(0, "Both."),
        ToolCallDelta(0, "call_a", "one", '{"x":'),
        ToolCallDelta(1, "call_b", "two", "{'y"),
        ToolCallDelta(2, "call_c", "three"),
        ToolCallDelta(0, arguments_delta=" 1}"),
        ToolCallDelta(1, arguments_delta="': 2}"),
        PartStop(0),
        ChoiceFinish(FinishReason.TOOL_CALLS, "tool_calls"),
        UsageUpdate(Usage(input=5, output=6, cache_read=7)),
        ResponseEnd(),
    ]
    streamed, plain = _both(events, client.messages, answers)
    for block in streamed["content"]:
        block.pop("parsed_output", None)
    assert streamed == plain
    assert [block.get("input") for block in streamed["content"]] == [
        None,
        {"x": 1},
        {"input": "{'y': 2}"},
        {},
    ]


def test_sdk_raises_on_a_truncated_stream(client: Any, answers: Answers) -> None:
    """A truncated stream raises in the SDK, instead of giving a short answer (G1)."""
    _, events = decoded(STREAMS["text"][:-60])
    _, answers.streamed = encoded(events)
    with pytest.raises(anthropic.APIStatusError), client.messages.stream(**_ASKED) as stream:
        stream.get_final_message()
