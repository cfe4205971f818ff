"""Output that a provider rejected comes back with the error (W112)."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dragoman.errors import ProviderError, ServerError, StreamInterrupted
from dragoman.model.usage import FinishReason
from dragoman.transport.client import Client
from dragoman.transport.retries import Retries
from dragoman.wire.dialect import dialect
from tests.corpus import Corpus
from tests.transport.servers import Step, plain, serving, streamed

SECRET = "zqzq0123456789abcdef"
WRITTEN = f'{{"name": "find", "arguments": {{"who": "{SECRET}"}}}}'
FAULT: dict[str, Any] = {
    "message": f"Tool call validation failed: {SECRET}",
    "type": "invalid_request_error",
    "code": "tool_use_failed",
    "failed_generation": WRITTEN,
}


def _groq(url: str) -> Client:
    return Client("groq:m", base_url=url, key="k", retries=Retries(attempts=1))


def _chunk(**delta: str) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    chunk = {"id": "r1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n".encode()


def _error_event(**changes: Any) -> bytes:
    data = {"error": {**FAULT, "status_code": 400, **changes}}
    return f"event: error\ndata: {json.dumps(data)}\n\n".encode()


async def _raised(step: Sequence[Step], *, streams: bool) -> Exception:
    async with serving(step) as server, _groq(server.url) as client:
        with pytest.raises((ProviderError, StreamInterrupted)) as raised:
            await (client.stream("hi").collect() if streams else client.send("hi"))
    return raised.value


@pytest.mark.parametrize("streams", [False, True])
async def test_a_rejected_request_has_the_generated_text(streams: bool) -> None:
    """A 400 with `failed_generation` is an error with a partial response, streamed or not."""
    error = await _raised(plain({"error": FAULT}, 400), streams=streams)
    assert isinstance(error, ServerError)
    assert error.code == "tool_use_failed"
    assert error.partial.text == WRITTEN
    assert error.partial.finish is FinishReason.MALFORMED_CALL
    assert error.partial.message.finish is FinishReason.MALFORMED_CALL
    assert error.partial.tool_calls == ()


async def test_a_stream_that_begins_with_the_error() -> None:
    """Before any text it is the provider's error, as if the stream had never started."""
    error = await _raised(streamed(_error_event()), streams=True)
    assert isinstance(error, ServerError)
    assert error.partial.text == WRITTEN
    assert error.partial.finish is FinishReason.MALFORMED_CALL


async def test_a_stream_that_ends_with_the_error() -> None:
    """After some text it is an interruption; `partial` has the text and the rejected output."""
    error = await _raised(
        streamed(_chunk(role="assistant", reasoning="Hm."), _error_event()), streams=True
    )
    assert isinstance(error, StreamInterrupted)
    assert error.partial.message.thinking == "Hm."
    assert error.partial.text == WRITTEN
    assert error.partial.finish is FinishReason.MALFORMED_CALL
    assert error.partial.id == "r1"
    cause = error.__cause__
    assert isinstance(cause, ProviderError)
    assert (cause.code, cause.provider, cause.partial.text) == ("tool_use_failed", "groq", WRITTEN)


async def test_an_empty_generation_adds_nothing() -> None:
    """`partial` has only the text that arrived, and isn't a complete answer."""
    step = streamed(_chunk(content="maybe"), _error_event(failed_generation=""))
    error = await _raised(step, streams=True)
    assert isinstance(error, StreamInterrupted)
    assert error.partial.text == "maybe"
    assert error.partial.finish is FinishReason.MALFORMED_CALL


async def test_other_errors_have_no_partial() -> None:
    """Only an error with the generated text has one; during a stream, `partial` is as usual."""
    plainly = {key: FAULT[key] for key in ("message", "type", "code")}
    refused = await _raised(plain({"error": plainly}, 400), streams=False)
    assert isinstance(refused, ProviderError)
    assert refused.partial is None
    frame = f"data: {json.dumps({'error': plainly})}\n\n".encode()
    cut = await _raised(streamed(_chunk(content="May"), frame), streams=True)
    assert isinstance(cut, StreamInterrupted)
    assert (cut.partial.text, cut.partial.finish) == ("May", None)


@pytest.mark.parametrize(
    ("changes", "finish"),
    [
        ({}, FinishReason.MALFORMED_CALL),
        ({"failed_generation": ""}, FinishReason.MALFORMED_CALL),
        ({"code": "json_validate_failed"}, FinishReason.ERROR),
        ({"failed_generation": None}, None),
        ({"failed_generation": {"a": SECRET}}, None),
        ({"failed_generation": 5}, None),
    ],
)
def test_only_texts_are_generations(changes: dict[str, Any], finish: FinishReason | None) -> None:
    """Failed calls and failed JSON have different finish reasons; other values are ignored."""
    error = dialect("openai-chat").decode_error(400, {"error": {**FAULT, **changes}})
    assert (error.partial and error.partial.finish) == finish


def test_the_generated_text_is_only_in_partial() -> None:
    """Nothing that is printed or logged contains it."""
    error = dialect("openai-chat").decode_error(400, json.dumps({"error": FAULT}).encode())
    for seen in (error, *(copied(error) for copied in _COPIES)):
        assert seen.partial.text == WRITTEN
        assert SECRET not in f"{seen} {seen!r} {vars(seen)!r} {seen.__cause__} {seen.__context__}"
    error.detail = None  # the provider's message quotes it in this test
    status, body = dialect("openai-chat").encode_error(error)
    assert status >= 400
    assert SECRET not in repr(body)


_COPIES: tuple[Callable[[ProviderError], ProviderError], ...] = (
    copy.copy,
    copy.deepcopy,
    lambda error: pickle.loads(pickle.dumps(error)),  # noqa: S301 - our own bytes
)


@pytest.mark.corpus
def test_recorded_failed_generations(corpus: Corpus) -> None:
    """Every recorded Groq error with a failed generation is read this way."""
    found = 0
    for recording in corpus.select(provider_api="groq", status=400):
        body = recording.response_body
        if isinstance(body, dict) and "failed_generation" in body["error"]:
            error = dialect("openai-chat").decode_error(400, body)
            assert error.partial.text == body["error"]["failed_generation"]
            found += 1
    assert found
