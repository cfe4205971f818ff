"""Errors that a provider reports with status 200: masked like any other, and recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web

from dragoman.wire.dialect import dialect
from tests.gateway.answers import Provider
from tests.gateway.client_requests import ask, body_for, path_for
from tests.gateway.test_chat import gateway_to

SENTENCE = "bad tool; key upstream-key at http://127.0.0.1:9/v1; gpu-7.models.svc:80"
SHOWN = "bad tool; key *** at ***; ***"
SECRETS = ("upstream-key", "127.0.0.1", "gpu-7")

_FAILED = {
    "id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "failed",
    "error": {"code": "server_error", "message": SENTENCE}, "output": [], "usage": None,
}  # fmt: skip
_CREATED = {**_FAILED, "status": "in_progress", "error": None}
_OPENROUTER = {"code": 502, "message": SENTENCE, "metadata": {"raw": f"{SENTENCE} raw"}}
_CHOICE = {
    "index": 0, "finish_reason": "error", "message": {"role": "assistant", "content": "begun"},
    "error": _OPENROUTER,
}  # fmt: skip
_STOPPED_CHOICE = {**_CHOICE, "finish_reason": "stop", "error": None}
_COUNTS = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
_BLOCKED = {
    "promptFeedback": {"blockReason": "OTHER", "blockReasonMessage": SENTENCE},
    "modelVersion": "m", "usageMetadata": {"promptTokenCount": 3, "totalTokenCount": 3},
}  # fmt: skip
_PART = {"index": 0, "content": {"role": "model", "parts": [{"text": "begun"}]}}
_LINE = {"model": "m", "created_at": "2026-01-01T00:00:00Z"}
_SAID = {**_LINE, "message": {"role": "assistant", "content": "begun"}, "done": False}
_STOPPED = {
    **_LINE, "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "error",
}  # fmt: skip


def _chunk(**fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"role": "assistant", "content": "begun"}, **fields}
    return {
        "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [choice],
    }  # fmt: skip


_CHAT = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "usage": _COUNTS}
WHOLE: dict[str, tuple[str, Any]] = {
    "a choice with an error": ("openai-chat", {**_CHAT, "choices": [_CHOICE]}),
    "an error beside choices": (
        "openai-chat", {**_CHAT, "choices": [_STOPPED_CHOICE], "error": _OPENROUTER},
    ),
    "a failed response": ("openai-responses", _FAILED),
    "a blocked prompt": ("gemini", _BLOCKED),
    "a blocked prompt with candidates": ("gemini", {**_BLOCKED, "candidates": [_PART]}),
    "an error beside the message": ("ollama", {**_STOPPED, "error": SENTENCE}),
}  # fmt: skip
STREAMED: dict[str, tuple[str, list[Any]]] = {
    "a choice with an error": (
        "openai-chat",
        [_chunk(), _chunk(finish_reason="error", error=_OPENROUTER)],
    ),
    "a chunk with an error": (
        "openai-chat",
        [_chunk(), {**_chunk(finish_reason="error"), "error": _OPENROUTER}],
    ),
    "a failed response": (
        "openai-responses",
        [
            {"type": "response.created", "response": _CREATED},
            {"type": "response.failed", "response": _FAILED},
        ],
    ),
    "an error event": (
        "anthropic",
        [
            {"type": "message_start", "message": {
                "id": "m", "type": "message", "role": "assistant", "content": [], "model": "m",
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }},
            {"type": "ping"},
            {"type": "error", "error": {"type": "api_error", "message": SENTENCE}},
        ],
    ),
    "a blocked prompt": ("gemini", [_BLOCKED]),
    "an error in the last line": ("ollama", [_SAID, {**_STOPPED, "error": SENTENCE}]),
}  # fmt: skip


def _stream_of(name: str, wires: list[Any]) -> bytes:
    if name == "ollama":
        return b"".join(json.dumps(wire).encode() + b"\n" for wire in wires)
    frames = [b"data: " + json.dumps(wire).encode() + b"\n\n" for wire in wires]
    if name in {"anthropic", "openai-responses"}:
        frames = [
            f"event: {wire['type']}\n".encode() + frame
            for wire, frame in zip(wires, frames, strict=True)
        ]
    return b"".join(frames) + (b"data: [DONE]\n\n" if name == "openai-chat" else b"")


class _Telling(Provider):
    """Answers with given bytes."""

    def __init__(self, name: str, body: Any, *, stream: bool) -> None:
        super().__init__(name)
        self.body = _stream_of(name, body) if stream else json.dumps(body).encode()
        lines = "application/x-ndjson" if name == "ollama" else "text/event-stream"
        self.kind = lines if stream else "application/json"

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Answer."""
        await request.read()
        return web.Response(body=self.body, content_type=self.kind)


_CASES = [
    *[(case, name, body, False) for case, (name, body) in WHOLE.items()],
    *[(case, name, body, True) for case, (name, body) in STREAMED.items()],
]


@pytest.mark.parametrize(
    ("name", "body", "stream"),
    [each[1:] for each in _CASES],
    ids=[f"{case}, {'streamed' if stream else 'whole'}" for case, _, _, stream in _CASES],
)
def test_its_own_client_reads_the_masked_sentence(name: str, body: Any, stream: bool) -> None:
    """The answer keeps its form, and the request counts as failed."""
    with gateway_to(_Telling(name, body, stream=stream)) as (serving, records):
        answer = ask(serving.url, path_for(name, stream=stream), body_for(name, stream=stream))
    text = answer.body.decode()
    assert not [secret for secret in SECRETS if secret in text], text
    assert SHOWN in text
    [record] = records
    assert record.error in {"ServerError", "Refused", "StreamInterrupted"}
    if not stream:
        assert answer.status == 200
        told = dialect(name).decode_response(answer.body)
        given = dialect(name).decode_response(json.dumps(body).encode())
        assert told.message.text == given.message.text


@pytest.mark.parametrize("stream", [False, True])
def test_clients_of_other_dialects_read_it_too(stream: bool) -> None:
    """The error of a choice is the error of the answer, where the dialect has no other place."""
    body = (STREAMED if stream else WHOLE)["a choice with an error"][1]
    with gateway_to(_Telling("openai-chat", body, stream=stream)) as (serving, records):
        path, asked = path_for("anthropic", stream=stream), body_for("anthropic", stream=stream)
        answer = ask(serving.url, path, asked)
    assert SHOWN.encode() in answer.body
    assert records[0].error == "ServerError"


def test_a_stored_response_holds_the_masked_sentence() -> None:
    """What is read later is what was sent."""
    provider = _Telling("openai-responses", _FAILED, stream=False)
    with gateway_to(provider, history="memory:") as (serving, _):
        answer = ask(serving.url, "/v1/responses", body_for("openai-responses"))
        again = ask(serving.url, f"/v1/responses/{answer.json['id']}", method="GET")
    assert answer.json["error"]["message"] == again.json["error"]["message"] == SHOWN


def test_an_error_about_the_account_shows_its_kind_alone() -> None:
    """Neither the sentence nor what is quoted beside it."""
    said = "Rate limit of organisation Acme"
    error = {"code": 429, "message": said, "metadata": {"raw": f"{said}, raw"}}
    body = {**_CHAT, "choices": [{**_CHOICE, "error": error}]}
    with gateway_to(_Telling("openai-chat", body, stream=False)) as (serving, _):
        answer = ask(serving.url, path_for("openai-chat"), body_for("openai-chat"))
    assert b"Acme" not in answer.body
    assert "rate limit" in answer.json["choices"][0]["error"]["message"]


@pytest.mark.parametrize("name", ["openai-chat", "gemini", "ollama"])
def test_a_tools_arguments_may_be_called_error(name: str) -> None:
    """Only a provider's own errors are errors."""
    from dragoman.model.tool_calls import ToolCall
    from tests.gateway.answers import body_of, said

    call = ToolCall("c1", "report", '{"error": "key upstream-key", "a": {"error": {"b": 1}}}')
    with gateway_to(Provider(name, answer := said(call))) as (serving, records):
        whole = ask(serving.url, path_for(name), body_for(name))
    assert whole.body == body_of(name, answer)
    assert records[0].error is None
