"""Streams and errors that we write, read by Google's SDK over a loopback server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import dragoman
from dragoman import errors
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
from dragoman.model.jsontext import dumps
from dragoman.model.parts import Origin, Text, Thinking
from dragoman.model.tools import ToolCallDelta
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.framing import sse
from dragoman.wire.gemini.codec import DIALECT
from tests.corpus import Corpus
from tests.wire import recorded
from tests.wire.gemini.streams import BODIES, STREAMS, decoded, encoded
from tests.wire.loopback import Answers, answering

genai: Any = pytest.importorskip("google.genai")


class Asking:
    """The SDK's client, with the answers it gets."""

    def __init__(self, client: Any, answers: Answers) -> None:
        self._client = client
        self._answers = answers

    def streamed(self, answer: bytes) -> list[Any]:
        """The chunks that the SDK reads."""
        self._answers.status, self._answers.streamed = 200, answer
        chunks = self._client.models.generate_content_stream(model="m", contents="hi")
        return list(chunks)

    def plain(self, answer: bytes, status: int = 200) -> Any:
        """The response that the SDK reads."""
        self._answers.status, self._answers.plain = status, answer
        return self._client.models.generate_content(model="m", contents="hi")


@pytest.fixture(name="sdk", scope="module")
def _sdk() -> Iterator[Asking]:
    with (
        answering() as answers,
        genai.Client(api_key="none", http_options={"base_url": answers.address}) as client,
    ):
        yield Asking(client, answers)


def _seen(chunks: list[Any]) -> dict[int, dict[str, Any]]:
    """What a client reads from the chunks, by candidate."""
    seen: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        for candidate in chunk.candidates or ():
            found = seen.setdefault(
                candidate.index or 0, {"text": "", "thoughts": "", "calls": [], "finish": None}
            )
            for part in (candidate.content and candidate.content.parts) or ():
                if part.text:
                    found["thoughts" if part.thought else "text"] += part.text
                if part.function_call:
                    found["calls"].append((part.function_call.name, part.function_call.args or {}))
            found["finish"] = candidate.finish_reason or found["finish"]
    return seen


@pytest.mark.parametrize("name", [name for name in BODIES if name != "snake case"])
def test_sdk_reads_our_streams(sdk: Asking, name: str) -> None:
    """For each test body the SDK reads the same from the stream as from the plain response."""
    events = decoded(STREAMS[name])[1]
    chunks = sdk.streamed(encoded(events)[1])
    whole = sdk.plain(DIALECT.encode_response(decoded(STREAMS[name])[0].response).to_bytes())
    assert _seen(chunks) == _seen([whole])
    last = chunks[-1]
    assert last.usage_metadata == whole.usage_metadata
    assert last.prompt_feedback == whole.prompt_feedback
    for chunk in chunks:
        assert (chunk.model_version, chunk.response_id) == (whole.model_version, whole.response_id)
    for one, other in zip(last.candidates or (), whole.candidates or (), strict=True):
        assert one.grounding_metadata == other.grounding_metadata
        assert one.citation_metadata == other.citation_metadata
        assert one.finish_message == other.finish_message


def test_sdk_reads_streams_of_other_providers(sdk: Asking) -> None:
    """Another provider's interleaved calls, invalid arguments and thinking are read."""
    events: list[Event] = [
        ResponseStart(id="chatcmpl-1", model="gpt", origin=Origin(dialect="openai-chat")),
        PartStart(0, Thinking("")),
        PartDelta(0, "Hm."),
        PartStop(0),
        PartStart(1, Text("")),
        PartDelta(1, "Both."),
        ToolCallDelta(0, "call_a", "one", '{"x":'),
        ToolCallDelta(1, "call_b", "two", "{'y"),
        ToolCallDelta(2, "call_c", "three"),
        ToolCallDelta(0, arguments_delta=" 1}"),
        ToolCallDelta(1, arguments_delta="': 2}"),
        PartStop(1),
        ChoiceFinish(FinishReason.TOOL_CALLS, "tool_calls"),
        UsageUpdate(Usage(input=5, output=6, cache_read=7)),
        ResponseEnd(),
    ]
    chunks = sdk.streamed(encoded(events)[1])
    assert _seen(chunks) == {
        0: {
            "text": "Both.",
            "thoughts": "Hm.",
            "calls": [("one", {"x": 1}), ("two", {"input": "{'y': 2}"}), ("three", {})],
            "finish": genai.types.FinishReason.STOP,
        }
    }
    assert chunks[-1].usage_metadata.prompt_token_count == 12
    assert chunks[-1].usage_metadata.candidates_token_count == 6


@pytest.mark.thorough
@pytest.mark.corpus
@pytest.mark.parametrize("dialect", ["anthropic", "openai-chat", "gemini"])
def test_sdk_reads_recorded_streams(sdk: Asking, corpus: Corpus, dialect: str) -> None:
    """The SDK reads text, thoughts, calls, finish and usage of every re-encoded stream."""
    count = 0
    for file, _, decoder, events in recorded.decoded(corpus, dialect):
        if not decoder.is_complete:
            continue
        folded = MessageAccumulator()
        folded.extend(events)
        response = folded.response
        chunks = sdk.streamed(encoded(events)[1])
        choices = [c.replace(finish=c.finish or FinishReason.OTHER) for c in response.choices]
        plain = DIALECT.encode_response(response.replace(choices=tuple(choices)))
        whole = sdk.plain(plain.to_bytes())
        assert _seen(chunks) == _seen([whole]), file
        assert chunks[-1].usage_metadata == whole.usage_metadata, file
        count += 1
    assert count > 20


@pytest.mark.parametrize("name", ["text", "parallel calls", "thinking"])
def test_sdk_raises_on_a_truncated_stream(sdk: Asking, name: str) -> None:
    """A truncated stream raises in the SDK, instead of giving a short answer (G1)."""
    events = [event for event in decoded(STREAMS[name])[1] if not isinstance(event, ResponseEnd)]
    for count in range(len(events)):
        with pytest.raises(genai.errors.ServerError) as caught:
            sdk.streamed(encoded(events[:count])[1])
        assert (caught.value.code, caught.value.status) == (500, "INTERNAL")


def test_sdk_raises_on_a_mid_stream_error(sdk: Asking) -> None:
    """A mid-stream error has its status and name in the SDK."""
    events = decoded(STREAMS["text"])[1][:3]
    failed = StreamError("Overloaded", "overloaded_error", 503)
    with pytest.raises(genai.errors.ServerError) as caught:
        sdk.streamed(encoded([*events, failed])[1])
    error = caught.value
    assert (error.code, error.status, error.message) == (503, "UNAVAILABLE", "Overloaded")


@pytest.mark.parametrize(
    ("error", "status", "name"),
    [
        (errors.AuthenticationError("x"), 401, "UNAUTHENTICATED"),
        (errors.PermissionDenied("x"), 403, "PERMISSION_DENIED"),
        (errors.RateLimited("x", retry_after=1.5), 429, "RESOURCE_EXHAUSTED"),
        (errors.QuotaExceeded("x"), 429, "RESOURCE_EXHAUSTED"),
        (errors.Overloaded("x"), 503, "UNAVAILABLE"),
        (errors.ContextTooLong("x"), 400, "INVALID_ARGUMENT"),
        (errors.Refused("x"), 400, "INVALID_ARGUMENT"),
        (errors.InvalidRequest("x"), 400, "INVALID_ARGUMENT"),
        (errors.ModelNotFound("x"), 404, "NOT_FOUND"),
        (errors.ServerError("x"), 500, "INTERNAL"),
        (errors.TimeoutError("x"), 504, "DEADLINE_EXCEEDED"),
    ],
)
def test_sdk_reads_our_errors(
    sdk: Asking, error: dragoman.DragomanError, status: int, name: str
) -> None:
    """Plain or mid-stream, the SDK raises the status's class with Google's name."""
    code, body = DIALECT.encode_error(error)
    kind = genai.errors.ClientError if status < 500 else genai.errors.ServerError
    with pytest.raises(kind) as caught:
        sdk.plain(dumps(body), code)
    assert (caught.value.code, caught.value.status) == (status, name)
    with pytest.raises(kind) as caught:
        sdk.streamed(sse(dumps(body)))
    assert (caught.value.code, caught.value.status) == (status, name)
