"""Sending: recordings of every dialect, error classes, retries and limits."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

import pytest

import dragoman
from dragoman import errors
from dragoman.errors import (
    AuthenticationError,
    ConfigError,
    ContextTooLong,
    DragomanError,
    InvalidInputError,
    InvalidRequest,
    ModelNotFound,
    Overloaded,
    PermissionDenied,
    ProviderError,
    RateLimited,
    ServerError,
)
from dragoman.model.events import ResponseStart
from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.transport.client import Client
from dragoman.transport.protocol import Timeouts
from dragoman.transport.rate_limits import Limits
from dragoman.transport.retries import Retries
from tests.corpus import Corpus, Recording
from tests.environment import PATIENCE
from tests.transport.answers import DIALECTS, TEXT, body, client, frames, naps
from tests.transport.servers import Seen, Step, plain, serving, streamed
from tests.wire.recorded import ENDPOINTS, SPOKEN_BY

_EVERY = 3  # one in so many recordings: the wire tests read all of them


def _recordings(corpus: Corpus, dialect: str) -> list[Recording]:
    found = corpus.select(provider_api=SPOKEN_BY[dialect], status=200, streaming=False)
    asked = [one for one in found if ENDPOINTS[dialect].search(one.request_path.partition("?")[0])]
    return [one for one in asked if isinstance(one.response_body, dict)][::_EVERY]


@pytest.mark.corpus
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_answers_equal_the_decoded_recordings(dialect: str, corpus: Corpus) -> None:
    """An answer over the network equals the decoded recording."""
    recordings = _recordings(corpus, dialect)
    speaker = dragoman.dialect(dialect)
    bodies = [one.response_body for one in recordings]
    bodies = [each for each in bodies if not each.get("error")]
    async with serving(*map(plain, bodies)) as server, client(dialect, server.url) as made:
        for wire in bodies:
            got, want = await made.send("hi"), speaker.decode_response(wire)
            assert got == want
            assert (got.id, got.model, got.usage, got.finish, got.extras) == (
                want.id, want.model, want.usage, want.finish, want.extras,
            )  # fmt: skip
    assert bodies
    assert server.connections == 1


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_an_answer_knows_its_provider(stream: bool) -> None:
    """Sealed state can only be opened by the provider that created it, whatever the dialect."""
    dialect = "anthropic"
    reply = streamed(*frames(dialect)) if stream else plain(body(dialect))
    async with serving(reply) as server, client(dialect, server.url) as made:
        found = await (made.stream("hi").collect() if stream else made.send("hi"))
        origin = found.message.origin
        assert origin is not None
        assert (origin.provider, origin.dialect, origin.model) == ("anthropic", dialect, "m")
        if stream:
            first = await anext(aiter(made.stream("hi")))
            assert isinstance(first, ResponseStart)
            assert first.origin == origin


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_request_can_be_a_text_a_message_or_a_whole_request(dialect: str) -> None:
    """`send` takes whatever `Messages.from_any` takes."""
    async with serving(plain(body(dialect))) as server, client(dialect, server.url) as made:
        for request in ("hi", Message.user("hi"), [Message.user("hi")],
                        Request(messages=(Message.user("hi"),))):  # fmt: skip
            assert (await made.send(request)).text == TEXT
    assert len({seen.body for seen in server.seen}) == 1


async def test_the_model_of_a_request_overrides_the_clients() -> None:
    """One client can use all models of a provider."""
    dialect = "openai-chat"
    async with serving(plain(body(dialect))) as server, client(dialect, server.url) as made:
        await made.send(Request(model="other", messages=(Message.user("hi"),)))
        await made.send("hi")
    assert [seen.json["model"] for seen in server.seen] == ["other", "m"]


# --- errors

_SDK_MODULES = ("openai", "anthropic", "groq")
_OURS: dict[str, tuple[type[DragomanError], ...]] = {
    "BadRequestError": (InvalidRequest,),
    "AuthenticationError": (AuthenticationError,),
    "PermissionDeniedError": (PermissionDenied,),
    "NotFoundError": (InvalidRequest, ModelNotFound),
    "ConflictError": (InvalidRequest,),
    "RequestTooLargeError": (ContextTooLong,),
    "ContentTooLargeError": (ContextTooLong,),
    "UnprocessableEntityError": (InvalidRequest,),
    "RateLimitError": (RateLimited,),
    "ServiceUnavailableError": (Overloaded,),
    "OverloadedError": (Overloaded,),
    "GatewayTimeoutError": (ServerError,),
    "DeadlineExceededError": (ServerError,),
    "InternalServerError": (ServerError, Overloaded),
}


def _statuses(module: str) -> dict[int, str]:
    """The error class that an SDK raises for each status, determined by calling it."""
    sdk: Any = import_module(module)
    httpx: Any = import_module("httpx2" if hasattr(sdk, "httpx2") else sdk._base_client.__dict__
                               .get("httpx2", import_module("httpx")).__name__)  # fmt: skip
    made = (
        sdk.Groq
        if module == "groq"
        else getattr(sdk, {"openai": "OpenAI"}.get(module, "Anthropic"))
    )(api_key="k")
    request = httpx.Request("POST", "http://x")
    with made:
        return {
            status: type(made._make_status_error("m", body={}, response=httpx.Response(
                status, request=request))).__name__
            for status in (400, 401, 403, 404, 409, 413, 422, 429, 500, 502, 503, 504, 529)
        }  # fmt: skip


@pytest.mark.parametrize("module", _SDK_MODULES)
async def test_every_error_class_of_the_sdks_has_a_counterpart(module: str) -> None:
    """Statuses with different classes in an SDK have different classes here."""
    dialect = "anthropic" if module == "anthropic" else "openai-chat"
    for status, name in _statuses(module).items():
        reply = plain({"error": {"message": "no", "type": "whatever"}}, status)
        async with (
            serving(reply) as server,
            client(dialect, server.url, retries=Retries(attempts=1)) as made,
        ):
            with pytest.raises(ProviderError) as raised:
                await made.send("hi")
        if name != "APIStatusError":  # a status without a class of its own in the SDK
            assert isinstance(raised.value, _OURS[name]), (status, name)
        assert raised.value.status == status
        assert raised.value.retryable is (status in {409, 429} or status >= 500)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 499, 500, 503, 504])
async def test_googles_errors_are_more_specific_than_client_and_server(status: int) -> None:
    """The SDK has two classes; ours are specific and have the status as well."""
    words = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED",
             404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL",
             503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}  # fmt: skip
    wire = {"error": {"code": status, "message": "no", "status": words[status]}}
    async with (
        serving(plain(wire, status)) as server,
        client("gemini", server.url, retries=Retries(attempts=1)) as made,
    ):
        with pytest.raises(ProviderError) as raised:
            await made.send("hi")
    from google.genai import errors as theirs

    is_client = issubclass(theirs.ClientError, Exception) and 400 <= status < 500
    assert isinstance(raised.value, (ServerError, Overloaded)) is not is_client
    assert (raised.value.status, raised.value.provider) == (status, "google")


async def test_an_error_names_the_provider_status_code_and_request() -> None:
    """It quotes nothing of the provider's message."""
    wire = {"error": {"message": "sk-secret is no key", "type": "invalid_request_error",
                      "code": "invalid_api_key"}}  # fmt: skip
    reply = plain(wire, 401, {"x-request-id": "req_1"})
    async with serving(reply) as server, client("openai-chat", server.url) as made:
        with pytest.raises(AuthenticationError) as raised:
            await made.send("hi")
    error = raised.value
    assert (error.provider, error.status, error.code, error.request_id) == (
        "openai", 401, "invalid_api_key", "req_1",
    )  # fmt: skip
    assert "secret" not in str(error)
    assert error.__context__ is None
    assert len(server.seen) == 1


_SLOW = {"error": {"message": "slow down", "code": 429, "type": "rate_limit_error"}}


@pytest.mark.parametrize("wire", [_SLOW, [_SLOW], {"type": "error", **_SLOW},
                                  {"error": "rate limit exceeded", "code": 429}])  # fmt: skip
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_error_with_status_200_is_an_error(dialect: str, wire: Any) -> None:
    """Gateways send these in various forms; retry headers still count."""
    reply = plain(wire, 200, {"x-request-id": "req_1"})
    async with serving(reply) as server, client(dialect, server.url) as made:
        with pytest.raises(RateLimited) as raised:
            await made.send("hi")
    assert raised.value.provider == made.provider.name
    assert raised.value.request_id == "req_1"
    assert raised.value.__context__ is None
    assert len(server.seen) == 3


# --- retries

_OK = plain(body("openai-chat"))


def _failed(status: int, **headers: str) -> list[Step]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return plain({"error": {"message": "no"}}, status, named)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_temporary_failures_are_retried(status: int) -> None:
    """Twice, each after a backoff, on the same connection."""
    replies = [_failed(status), _failed(status), _OK]
    async with serving(*replies) as server, client("openai-chat", server.url) as made:
        assert (await made.send("hi")).text == TEXT
    first, second = naps(made)
    assert 0.25 <= first <= 0.5 <= second <= 1.0
    assert len({seen.body for seen in server.seen}) == 1
    assert server.connections == 1


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "1.5"}, 1.5),
        ({"retry_after_ms": "250"}, 0.25),
        ({"retry_after_ms": "250", "retry_after": "9"}, 0.25),
        ({"retry_after": "60"}, 60.0),
    ],
)
async def test_retry_after_is_obeyed(headers: dict[str, str], wait: float) -> None:
    """To the millisecond."""
    replies = [_failed(429, **headers), _OK]
    async with serving(*replies) as server, client("openai-chat", server.url) as made:
        await made.send("hi")
    assert naps(made) == [wait]


async def test_retry_after_may_be_a_date() -> None:
    """A date in the past means the normal backoff."""
    from email.utils import formatdate
    from time import time

    for seconds, low, high in ((30, 25, 31), (-30, 0.25, 0.5)):
        replies = [_failed(503, retry_after=formatdate(time() + seconds, usegmt=True)), _OK]
        async with serving(*replies) as server, client("openai-chat", server.url) as made:
            await made.send("hi")
        assert low <= naps(made)[0] <= high


async def test_a_retry_after_above_the_limit_is_raised() -> None:
    """The error is raised at once and has the requested wait."""
    replies = [_failed(429, retry_after="3600"), _OK]
    async with serving(*replies) as server, client("openai-chat", server.url) as made:
        with pytest.raises(RateLimited) as raised:
            await made.send("hi")
    assert raised.value.retry_after == 3600
    assert naps(made) == []


@pytest.mark.parametrize(
    "reply",
    [
        _failed(400), _failed(401), _failed(404),
        _failed(500, x_should_retry="false"),
        plain({"error": {"code": "insufficient_quota", "message": "no"}}, 429),
        plain({"error": {"message": "maximum context length exceeded"}}, 502),
    ],
)  # fmt: skip
async def test_permanent_failures_are_not_retried(reply: list[Step]) -> None:
    """If the provider says so, whatever the status."""
    async with serving(reply) as server, client("openai-chat", server.url) as made:
        with pytest.raises(ProviderError):
            await made.send("hi")
    assert len(server.seen) == 1


async def test_the_last_error_is_raised_when_all_attempts_failed() -> None:
    """Retries end without a total timeout."""
    replies = [_failed(500), _failed(503), _failed(529)]
    async with serving(*replies) as server, client("openai-chat", server.url) as made:
        with pytest.raises(Overloaded) as raised:
            await made.send("hi")
    assert raised.value.status == 529
    assert len(server.seen) == 3


# --- reasoning that can't be verified (W27)

_UNVERIFIED: dict[str, dict[str, Any]] = {
    "anthropic": {"type": "error", "error": {"type": "invalid_request_error", "message":
                  "messages.1.content.0: Invalid `signature` in `thinking` block"}},
    "openai-responses": {"error": {"code": "invalid_encrypted_content", "message":
                         "The encrypted content gAAA could not be verified."}},
    "gemini": {"error": {"code": 400, "status": "INVALID_ARGUMENT",
                         "message": "Thought signature is not valid"}},
}  # fmt: skip


_THOUGHTS: dict[str, dict[str, Any]] = {
    "anthropic": {"id": "r1", "type": "message", "role": "assistant", "model": "m",
                  "stop_reason": "end_turn", "content": [
                      {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                      {"type": "text", "text": "hello"}]},
    "openai-responses": {"id": "r1", "model": "m", "status": "completed", "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": "hello", "annotations": []}]}]},
    "gemini": {"modelVersion": "m", "candidates": [{"index": 0, "finishReason": "STOP", "content":
               {"role": "model", "parts": [{"text": "hello", "thoughtSignature": "c2ln"}]}}]},
}  # fmt: skip


def _thoughtful(dialect: str) -> Request:
    answer = dragoman.dialect(dialect).decode_response(_THOUGHTS[dialect]).message
    return Request(messages=(Message.user("hi"), answer, Message.user("and?")))


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("dialect", list(_UNVERIFIED))
async def test_rejected_reasoning_is_removed_once(dialect: str, stream: bool) -> None:
    """The second request is the same without it; a second rejection is raised."""
    refused = plain(_UNVERIFIED[dialect], 400)
    async with (
        serving(refused) as server,
        client(dialect, server.url, retries=Retries(attempts=1)) as made,
    ):
        request = _thoughtful(dialect)
        with pytest.raises(InvalidRequest):
            await (made.stream(request).collect() if stream else made.send(request))
    first, second = server.seen
    assert b"c2ln" in first.body
    assert b"c2ln" not in second.body
    assert b"hello" in second.body
    assert naps(made) == []


async def test_without_reasoning_there_is_nothing_to_remove() -> None:
    """The error is raised at once."""
    reply = plain(_UNVERIFIED["anthropic"], 400)
    async with serving(reply) as server, client("anthropic", server.url) as made:
        with pytest.raises(InvalidRequest):
            await made.send("hi")
    assert len(server.seen) == 1


# --- limits


async def test_limits_hold_for_all_clients_of_a_provider() -> None:
    """For any number of clients, streaming or not."""
    dialect = "openai-chat"
    under_way: list[int] = []
    go = asyncio.Event()

    def script(_: Seen) -> list[Step]:
        under_way.append(1)
        return [go, *plain(body(dialect))]

    limits = Limits(concurrent=2)
    async with (
        serving(script) as server,
        client(dialect, server.url, limits=limits) as one,
        client(dialect, server.url, limits=Limits(concurrent=2)) as other,
    ):
        tasks = [asyncio.create_task(made.send("hi")) for made in (one, other, one, other)]
        await server.until(lambda seen: len(seen.seen) == 2)
        for _ in range(50):
            await asyncio.sleep(0)
        assert len(under_way) == 2
        go.set()
        assert [one.text for one in await asyncio.gather(*tasks)] == [TEXT] * 4


async def test_slots_are_released_in_every_case() -> None:
    """After errors, cancellation, and streams that were closed early or dropped."""
    dialect = "openai-chat"
    never = asyncio.Event()
    limits = Limits(concurrent=1)
    replies: list[list[Step]] = [_failed(400), [never], plain(body(dialect))]
    async with serving(*replies) as server, client(dialect, server.url, limits=limits) as made:
        with pytest.raises(InvalidRequest):
            await made.send("hi")
        task = asyncio.create_task(made.send("hi"))
        await server.until(lambda seen: len(seen.seen) == 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(PATIENCE):
            assert (await made.send("hi")).text == TEXT
            async for _ in made.stream("hi"):
                break
            await asyncio.sleep(0)
            assert (await made.send("hi")).text == TEXT


# --- the rest


async def test_a_total_timeout_covers_all_attempts() -> None:
    """It is also a builtin TimeoutError, and no task or connection remains."""
    never = asyncio.Event()
    timeouts = Timeouts(total=0.05)
    async with (
        serving([never]) as server,
        client("openai-chat", server.url, timeouts=timeouts) as made,
    ):
        with pytest.raises(errors.TimeoutError, match=r"0\.05 seconds") as raised:
            await made.send("hi")
        assert isinstance(raised.value, TimeoutError)
        await server.until_idle()


async def test_a_closed_client_raises_an_error() -> None:
    """It doesn't silently open new connections."""
    made = Client("ollama:m")
    await made.close()
    await made.close()
    with pytest.raises(InvalidInputError, match="closed"):
        await made.send("hi")
    with pytest.raises(InvalidInputError, match="closed"):
        await made.stream("hi").collect()


async def test_one_client_serves_many_requests_at_once() -> None:
    """Each gets its own answer."""

    def script(seen: Seen) -> list[Step]:
        wire = body("openai-chat")
        wire["choices"][0]["message"]["content"] = seen.json["messages"][0]["content"]
        return plain(wire)

    async with serving(script) as server, client("openai-chat", server.url) as made:
        texts = [f"number {number}" for number in range(100)]
        answers = await asyncio.gather(*(made.send(text) for text in texts))
    assert [answer.text for answer in answers] == texts


def test_one_client_serves_several_loops_in_turn() -> None:
    """It leaves nothing open for a loop that ended without closing it."""
    made: list[Client] = []

    async def ask() -> int:
        async with serving(plain(body("ollama"))) as server:
            if not made:
                made.append(client("ollama", server.url))
            made[0]._deployment._base_url = server.url
            assert (await made[0].send("hi")).text == TEXT
        return len(asyncio.all_tasks())

    assert [asyncio.run(ask()) for _ in range(3)] == [1, 1, 1]
    transport: Any = made[0]._transport
    assert len(transport._sessions._by_loop) <= 1


async def test_a_transport_that_was_passed_in_stays_open() -> None:
    """Its owner closes it."""
    from dragoman.transport.http import HttpTransport

    transport = HttpTransport()
    async with serving(plain(body("ollama"))) as server:
        for _ in range(2):
            async with client("ollama", server.url, transport=transport) as made:
                await made.send("hi")
        assert server.connections == 1
        await transport.close()
        await server.until_idle()


def test_invalid_arguments_are_config_errors() -> None:
    """Unknown providers and dialects are reported at once."""
    with pytest.raises(ConfigError):
        Client("nowhere:m")
    with pytest.raises(ConfigError):
        Client("openai:m", dialect="latin")


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "1"])
def test_a_timeout_is_a_number_of_seconds(seconds: Any) -> None:
    """It must be above zero."""
    with pytest.raises(InvalidInputError):
        Timeouts(total=seconds)


def test_losses_are_known_before_sending() -> None:
    """`encode` returns them, or raises an error with `strict`."""
    request = dragoman.Request(
        messages=(Message.user("hi"),), sampling=dragoman.model.Sampling(max_tokens=9, seed=7)
    )
    losses = Client("anthropic:claude-x", key="k").encode(request).losses
    assert [loss.path for loss in losses] == ["sampling.seed"]
    with pytest.raises(dragoman.errors.LossError):
        Client("anthropic:claude-x", key="k", strict=True).encode(request)
