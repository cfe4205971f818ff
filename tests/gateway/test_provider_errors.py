"""Why a provider refused: its own sentence reaches the client, and only the client."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web

from dragoman.gateway.access_log import json_line, text_line
from dragoman.model.events import StreamError
from dragoman.model.parts import Text
from dragoman.wire.dialect import dialect
from tests.gateway.answers import KINDS, Provider, frames_of, said
from tests.gateway.client_requests import FRONTS, ask, body_for, path_for
from tests.gateway.test_chat import gateway_to

TOOLS = "registry.ollama.ai/library/gemma3:1b does not support tools"
REFUSALS: dict[str, tuple[int, Any, str]] = {
    "openai-chat": (
        400,
        {"error": {
            "message": "the request exceeds the available context size. try increasing it",
            "type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 8192,
        }},
        "try increasing it",
    ),
    "openai-responses": (
        400,
        {"error": {"message": "Unknown parameter: 'client_metadata'.", "param": None}},
        "Unknown parameter: 'client_metadata'.",
    ),
    "anthropic": (
        400,
        {"type": "error", "error": {
            "type": "invalid_request_error", "message": "messages.1: roles must alternate",
        }},
        "roles must alternate",
    ),
    "gemini": (
        400,
        {"error": {
            "code": 400, "status": "INVALID_ARGUMENT",
            "message": "* GenerateContentRequest.tools[0]: Invalid function name.\n",
        }},
        "Invalid function name.",
    ),
    "ollama": (400, {"error": TOOLS}, TOOLS),
}  # fmt: skip


class Refusing(Provider):
    """Refuses every request with a status and a body."""

    def __init__(self, name: str, status: int, body: Any) -> None:
        super().__init__(name)
        self.refusal = status, body

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Refuse."""
        await request.read()
        status, body = self.refusal
        if isinstance(body, str):
            return web.Response(status=status, text=body, content_type="text/html")
        return web.json_response(body, status=status)


def told(answer: Any) -> str:
    """The message in an error body of any dialect."""
    error = answer.json["error"]
    return error if isinstance(error, str) else error["message"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("back", KINDS)
@pytest.mark.parametrize("front", FRONTS)
def test_the_client_reads_the_providers_sentence(front: str, back: str, stream: bool) -> None:
    """In the form of its own dialect, whichever the provider speaks."""
    status, body, sentence = REFUSALS[back]
    with gateway_to(Refusing(back, status, body)) as (serving, _):
        path, asked = path_for(front, stream=stream), body_for(front, stream=stream)
        answer = ask(serving.url, path, asked)
    assert answer.status == status
    assert sentence in told(answer)


@pytest.mark.parametrize("front", FRONTS)
def test_keys_and_addresses_of_the_provider_are_masked(front: str) -> None:
    """Its key, its own address and those inside its network; a page outside stays readable."""
    sentence = (
        "bad tool; key upstream-key at {host}: dial tcp 10.1.2.3:11434 for http://vllm:8000/v1/chat,"
        " gpu-7.models.svc:80, sk-abcdefgh12345678; see https://docs.example.com/errors"
    )

    class Telling(Provider):
        async def __call__(self, request: web.Request) -> web.StreamResponse:
            await request.read()
            message = sentence.format(host=f"http://{request.host}/v1/chat/completions")
            return web.json_response({"error": {"message": message}}, status=400)

    with gateway_to(Telling("openai-chat")) as (serving, _):
        text = told(ask(serving.url, path_for(front), body_for(front)))
    secrets = ("upstream-key", "127.0.0.1", "10.1.2.3", "vllm", "gpu-7", "sk-abc")
    assert not [secret for secret in secrets if secret in text], text
    assert "bad tool" in text
    assert text.endswith("see https://docs.example.com/errors")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (401, {"error": {"message": "Incorrect API key of organisation Acme"}}),
        (403, {"error": {"message": "Project Acme is disabled"}}),
        (429, {"error": {"message": "Rate limit reached in organization Acme"}}),
        (402, {"error": {"message": "Acme has no credit left"}}),
        (502, "<html><h1>Acme's proxy</h1></html>"),
    ],
)
def test_what_concerns_the_operators_account_stays_inside(status: int, body: Any) -> None:
    """Clients learn the kind of error; the provider's words name the operator's account."""
    with gateway_to(Refusing("openai-chat", status, body)) as (serving, _):
        answer = ask(serving.url, path_for("openai-chat"), body_for("openai-chat"))
    assert b"Acme" not in answer.body


def test_a_long_sentence_is_cut() -> None:
    """A provider that repeats the whole request does not fill the client's screen."""
    body = {"error": {"message": "no: " + "long " * 2000}}
    with gateway_to(Refusing("openai-chat", 400, body)) as (serving, _):
        answer = ask(serving.url, path_for("anthropic"), body_for("anthropic"))
    assert len(told(answer)) < 700


def test_of_several_models_the_most_useful_sentence_is_told() -> None:
    """If all of a route's providers fail."""
    busy = Refusing("anthropic", 529, {"error": {"type": "overloaded_error", "message": "busy"}})
    odd = Refusing("ollama", 500, {"error": "model runner has unexpectedly stopped"})
    with gateway_to(odd, busy) as (serving, _):
        answer = ask(serving.url, path_for("openai-chat"), body_for("openai-chat"))
    assert told(answer).endswith(": busy")


def error_frame(name: str, message: str) -> bytes:
    """How a provider reports an error in mid-stream."""
    body: Any = {"error": {"message": message, "code": 500}}
    if name == "anthropic":
        body = {"type": "error", "error": {"type": "api_error", "message": message}}
    elif name == "openai-responses":
        body = {"type": "error", "code": "server_error", "message": message, "param": None}
    elif name == "ollama":
        return json.dumps({"error": message}).encode() + b"\n"
    return b"data: " + json.dumps(body).encode() + b"\n\n"


BEGINNINGS = {
    "openai-chat": b'"role":"assistant"',
    "openai-responses": b"event: response.created",
    "anthropic": b"event: message_start",
}


class Failing(Provider):
    """Begins its answer, says something about why it goes no further, and closes."""

    size = 10**6
    """Bytes that are sent at once."""

    def __init__(self, name: str, message: str | None) -> None:
        super().__init__(name)
        frames = frames_of(name, said(Text("Begun " * 999), Text("on")))
        self.begun = b"".join(frames[:2] if len(frames) > 2 else frames[:1])
        self.message = message

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Fail."""
        await request.read()
        kind = "application/x-ndjson" if self.name == "ollama" else "text/event-stream"
        reply = web.StreamResponse(headers={"content-type": kind})
        await reply.prepare(request)
        data = self.begun
        if self.message is not None:
            data += error_frame(self.name, self.message.format(host=request.host))
        for start in range(0, len(data), self.size):
            await reply.write(data[start : start + self.size])
        return reply


@pytest.mark.parametrize("back", KINDS)
@pytest.mark.parametrize("front", FRONTS)
def test_a_stream_that_fails_says_why(front: str, back: str) -> None:
    """Once, at its end, with keys and addresses masked; also where frames are passed through."""
    message = 'out of memory, upstream-key, http://{host}/v1 "quoted"'
    with gateway_to(Failing(back, message)) as (serving, records):
        path, body = path_for(front, stream=True), body_for(front, stream=True)
        answer = ask(serving.url, path, body)
    assert answer.body.count(b"out of memory, ***, *** ") == 1
    assert b"upstream-key" not in answer.body
    assert b"127.0.0.1" not in answer.body
    assert b"could not be reached" not in answer.body
    assert records[0].error == "StreamInterrupted"


@pytest.mark.parametrize("message", [None, "out of memory", "upstream-key " + "long " * 999])
@pytest.mark.parametrize("name", FRONTS)
def test_a_stream_that_is_passed_through_ends_once(name: str, message: str | None) -> None:
    """What the client gets after the frames that came is one error, and no second beginning."""
    path, body = path_for(name, stream=True), body_for(name, stream=True)
    provider, answers = Failing(name, message), []
    for provider.size in (10**6, 7):
        with gateway_to(provider) as (serving, _):
            answers.append(ask(serving.url, path, body).body)
    assert b"upstream-key" not in answers[0]
    if message is not None:
        assert answers[0] == answers[1]
    if message == "out of memory":
        assert answers[0].endswith(error_frame(name, message))
    decoder = dialect(name).stream_decoder()
    events = [*decoder.feed(answers[1]), *decoder.close()]
    (error,) = [event for event in events if isinstance(event, StreamError)]
    assert len(error.message) <= 501
    assert name not in BEGINNINGS or answers[1].count(BEGINNINGS[name]) == 1


def test_what_concerns_the_operators_account_stays_inside_in_mid_stream() -> None:
    """As in a whole response, where the frames are passed through."""

    class Limited(Failing):
        async def __call__(self, request: web.Request) -> web.StreamResponse:
            await request.read()
            reply = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await reply.prepare(request)
            error = {"message": "Rate limit of Acme", "code": "rate_limit_exceeded"}
            begun = frames_of(self.name, said())[0]
            await reply.write(begun + b"data: " + json.dumps({"error": error}).encode() + b"\n\n")
            return reply

    path, body = path_for("openai-chat", stream=True), body_for("openai-chat", stream=True)
    with gateway_to(Limited("openai-chat", None)) as (serving, _):
        answer = ask(serving.url, path, body)
    assert b"Acme" not in answer.body
    assert b"the provider's rate limit was exceeded" in answer.body


@pytest.mark.parametrize("wanted", [False, True])
def test_the_log_has_it_only_where_the_operator_wants_it(wanted: bool) -> None:
    """`log_provider_errors`; one printable line, whatever the provider wrote."""
    sentence = 'Ana\'s \x1b[31m tool\n200 "forged" \u2028 sk-abcdefgh12345678'
    provider = Refusing("openai-chat", 401, {"error": {"message": sentence}})
    with gateway_to(provider, log_provider_errors=wanted) as (serving, records):
        ask(serving.url, path_for("anthropic"), body_for("anthropic"))
    for line in (json_line(1.0, records[0]), text_line(1.0, records[0])):
        assert (b"Ana's" in line) is wanted
        assert b"sk-abc" not in line
        assert all(32 <= byte < 127 for byte in line[:-1])
    if wanted:
        assert "forged" in json.loads(json_line(1.0, records[0]))["provider_error"]


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_list_of_invalid_fields_is_told_too(wrapped: bool) -> None:
    """FastAPI's form, also as Mistral wraps it: each field's place and what is wrong with it."""
    detail = [
        {"type": "extra_forbidden", "loc": ["body", "client_metadata"], "input": {"a": "Ana"},
         "msg": "Extra inputs are not permitted"},
        {"type": "missing", "loc": ["body", "tools", 0, "name"], "msg": "Field required"},
    ]  # fmt: skip
    body: Any = {"detail": detail}
    if wrapped:
        body = {"object": "error", "message": body, "type": "invalid_request_error"}
    with gateway_to(Refusing("openai-responses", 422, body)) as (serving, _):
        answer = ask(serving.url, path_for("openai-responses"), body_for("openai-responses"))
    text = told(answer)
    assert "client_metadata: Extra inputs are not permitted tools.0.name: Field required" in text
    assert "Ana" not in text
