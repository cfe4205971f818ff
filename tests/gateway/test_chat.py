"""Chats through a gateway on real sockets: every front with every provider."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from aiohttp import web

from dragoman.gateway.config.settings import GatewayConfig, Hop, RouteSettings
from dragoman.gateway.keys import Spent
from dragoman.gateway.records import RequestRecord
from dragoman.model.usage import Usage
from tests.gateway.answers import KINDS, SAID, Provider, frames_of, said
from tests.gateway.client_requests import FRONTS, ask, body_for, path_for, text_in
from tests.gateway.running import Serving, place, routed, running, upstream
from tests.gateway.services.test_keys import ScriptedKeys


@contextmanager
def gateway_to(
    *providers: Provider, **server: Any
) -> Generator[tuple[Serving, list[RequestRecord]]]:
    """A gateway in front of these providers, in turn, and the records of its requests."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        places = [
            place(
                f"place{number}",
                KINDS[each.name],
                stack.enter_context(upstream(each)),
                dialect=each.name,
            )
            for number, each in enumerate(providers)
        ]
        serving = stack.enter_context(running(routed(*places, **server)))
        records: list[RequestRecord] = []
        serving.gateway.observers.append(records.append)
        yield serving, records


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("back", KINDS)
@pytest.mark.parametrize("front", FRONTS)
def test_every_front_works_with_every_provider(front: str, back: str, stream: bool) -> None:
    """The client reads the provider's text, and the usage is known."""
    with gateway_to(Provider(back)) as (serving, records):
        path, body = path_for(front, stream=stream), body_for(front, stream=stream)
        answer = ask(serving.url, path, body)
    assert answer.status == 200, answer.body
    assert text_in(front, answer, stream=stream) == SAID
    [record] = records
    assert record.usage is not None
    assert (record.usage.total_input, record.usage.total_output) == (11, 7)
    assert (record.front, record.status, record.stream) == (front, 200, stream)
    assert record.passes is (front == back)


@pytest.mark.parametrize("front", FRONTS)
def test_an_answer_in_the_clients_dialect_is_passed_through(front: str) -> None:
    """Plain answers and streams are byte for byte what the provider sent."""
    provider = Provider(front)
    with gateway_to(provider) as (serving, _):
        whole = ask(serving.url, path_for(front), body_for(front))
        streamed = ask(serving.url, path_for(front, stream=True), _streamed(front))
    assert [whole.body, streamed.body] == provider.sent


class _WithoutMarker(Provider):
    """A Chat server whose streams have the usage, unasked, and end without `[DONE]`."""

    async def stream(self, request: web.Request, frames: Sequence[bytes]) -> web.StreamResponse:
        frames = frames_of(self.name, self.answers[0])
        last = frames[-1].removesuffix(b"data: [DONE]\n\n")
        return await super().stream(request, [*frames[:-1], last])


def test_a_stream_without_end_marker_is_complete() -> None:
    """The client of a host that sends no `[DONE]` gets one and no error; the usage is known."""
    path, body = path_for("openai-chat", stream=True), body_for("openai-chat", stream=True)
    records: list[RequestRecord] = []
    with (
        upstream(_WithoutMarker("openai-chat")) as url,
        running(routed(place("place0", "perplexity", url))) as serving,
    ):
        serving.gateway.observers.append(records.append)
        answer = ask(serving.url, path, body)
    assert text_in("openai-chat", answer, stream=True) == SAID
    assert b'"error"' not in answer.body
    assert answer.body.endswith(b"data: [DONE]\n\n")
    [record] = records
    assert record.usage == Usage(input=11, output=7)


def _streamed(front: str) -> Any:
    body = body_for(front, stream=True)
    if front == "openai-chat":
        body["stream_options"] = {"include_usage": True}
    return body


def test_unrequested_usage_is_counted_and_not_shown() -> None:
    """Chat's usage frame is requested, read and left out; the rest is passed through."""
    provider = Provider("openai-chat")
    with gateway_to(provider) as (serving, records):
        path = path_for("openai-chat")
        answer = ask(serving.url, path, body_for("openai-chat", stream=True))
        hidden = {
            **body_for("openai-chat", stream=True),
            "stream_options": {"include_usage": False},
        }
        second = ask(serving.url, path, hidden)
    assert provider.asked[0]["stream_options"] == {"include_usage": True}
    assert provider.asked[1]["stream_options"] == {"include_usage": True}
    for each in (answer, second):
        frames = [json.loads(line[6:]) for line in each.body.split(b"\n\n") if line[6:7] == b"{"]
        assert all(frame["choices"] for frame in frames)
        assert each.body.endswith(b"data: [DONE]\n\n")
    assert [record.usage for record in records if record.usage is None] == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("front", FRONTS)
def test_the_next_provider_is_used_if_one_fails(front: str, stream: bool) -> None:
    """An overloaded provider is skipped, before anything was sent."""

    class Busy(Provider):
        async def __call__(self, request: web.Request) -> web.StreamResponse:
            self.asked.append(await request.read())
            return web.Response(status=503, body=b"{}")

    busy = Busy("openai-chat")
    with gateway_to(busy, Provider("anthropic")) as (serving, records):
        path, body = path_for(front, stream=stream), body_for(front, stream=stream)
        answer = ask(serving.url, path, body)
    assert text_in(front, answer, stream=stream) == SAID
    assert (len(busy.asked), records[0].attempts, records[0].provider) == (1, 2, "anthropic")


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 529])
@pytest.mark.parametrize("front", FRONTS)
def test_errors_are_in_the_clients_form(front: str, status: int) -> None:
    """A provider's rejection is an error in the front's form, with a status of its class."""

    class Refusing(Provider):
        async def __call__(self, request: web.Request) -> web.StreamResponse:
            await request.read()
            body = {"type": "error", "error": {"type": "x_error", "message": "no"}}
            return web.json_response(body, status=status, headers={"retry-after": "7"})

    with gateway_to(Refusing("anthropic")) as (serving, records):
        answer = ask(serving.url, path_for(front), body_for(front))
        streamed = ask(serving.url, path_for(front, stream=True), body_for(front, stream=True))
    for each in (answer, streamed):
        assert each.status // 100 == status // 100
        assert "error" in each.json
        if status == 429:
            assert each.headers["retry-after"] == "7"
    assert all(record.error for record in records)


@pytest.mark.parametrize("back", KINDS)
@pytest.mark.parametrize("front", FRONTS)
def test_an_interrupted_stream_is_never_a_complete_answer(front: str, back: str) -> None:
    """Wherever the provider's connection breaks, the client gets an error or no end."""
    frames = frames_of(back, said())
    whole = b"".join(frames)
    end = sum(map(len, frames[: len(frames) // 2]))  # well before its end
    for cut in (1, end // 3, end - 1):

        class Cut(Provider):
            async def __call__(self, request: web.Request) -> web.StreamResponse:
                await request.read()
                kind = "application/x-ndjson" if back == "ollama" else "text/event-stream"
                reply = web.StreamResponse(headers={"content-type": kind})
                await reply.prepare(request)
                await reply.write(whole[:cut])  # noqa: B023 - used before the next round
                assert request.transport is not None
                request.transport.close()
                return reply

        with gateway_to(Cut(back)) as (serving, records):
            path, body = path_for(front, stream=True), body_for(front, stream=True)
            answer = ask(serving.url, path, body)
        if answer.status != 200:
            continue
        assert b"error" in answer.body or b"failed" in answer.body, (cut, answer.body)
        assert records[0].error is not None


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_disconnects_cancels_the_upstream_request(stream: bool) -> None:
    """The provider's connection is closed as soon as the client's is."""
    asked, left = threading.Event(), threading.Event()

    class Slow(Provider):
        async def __call__(self, request: web.Request) -> web.StreamResponse:
            await request.read()
            asked.set()
            try:
                if stream:
                    reply = web.StreamResponse(headers={"content-type": "text/event-stream"})
                    await reply.prepare(request)
                    await reply.write(frames_of(self.name, said())[0])
                await asyncio.sleep(30)
            finally:
                left.set()
            raise AssertionError

    with gateway_to(Slow("openai-chat")) as (serving, records):
        host, port = serving.url.removeprefix("http://").split(":")
        raw = json.dumps(body_for("openai-chat", stream=stream)).encode()
        with socket.create_connection((host, int(port))) as connection:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\n"
            connection.sendall(f"{head}content-length: {len(raw)}\r\n\r\n".encode() + raw)
            assert asked.wait(10)
            if stream:
                connection.recv(1024)
        assert left.wait(10)
        for _ in range(200):
            if records:
                break
            threading.Event().wait(0.02)
    assert (records[0].left, records[0].status) == (True, 499)


def _total(spent: Spent) -> int:
    return spent.tokens_in + spent.tokens_out


def test_a_client_that_disconnects_before_the_first_byte_pays_the_estimate() -> None:
    """The provider may charge for the request, so an early disconnect isn't free."""
    asked = threading.Event()

    class Silent(Provider):
        async def __call__(self, request: web.Request) -> web.StreamResponse:
            await request.read()
            asked.set()
            await asyncio.sleep(30)
            raise AssertionError

    with gateway_to(Silent("openai-chat")) as (serving, records):
        keys: Any = ScriptedKeys()
        serving.gateway.keys = keys
        host, port = serving.url.removeprefix("http://").split(":")
        raw = json.dumps(body_for("openai-chat", model="m1")).encode()
        with socket.create_connection((host, int(port))) as connection:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\n"
            head += f"authorization: Bearer small\r\ncontent-length: {len(raw)}\r\n\r\n"
            connection.sendall(head.encode() + raw)
            assert asked.wait(10)
        for _ in range(500):
            if records:
                break
            threading.Event().wait(0.02)
    [(_, _, tokens, _)] = keys.reserved
    assert (keys.released, [_total(spent) for spent in keys.settled]) == (0, [tokens])


@pytest.mark.parametrize("given", ["defaults", "fixed"])
def test_a_route_with_a_limit_reserves_less(given: str) -> None:
    """The reservation uses the limit that is sent upstream, not our default."""
    with upstream(Provider("openai-chat")) as url:
        lab = place("lab", KINDS["openai-chat"], url, dialect="openai-chat")
        limits: dict[str, Any] = {given: {"max_tokens": 100}}
        route = RouteSettings(model="*", to=(Hop(place=lab),), **limits)
        with running(GatewayConfig(places={"lab": lab}, routes=(route,))) as serving:
            keys: Any = ScriptedKeys()
            serving.gateway.keys = keys
            body = body_for("openai-chat", model="m1")
            answer = ask(serving.url, path_for("openai-chat"), body, authorization="Bearer small")
    assert answer.status == 200
    assert 100 < keys.reserved[0][2] < 200


@pytest.mark.parametrize("back", ["openai-chat", "anthropic"])
def test_a_client_that_disconnects_at_the_end_is_counted_as_answered(back: str) -> None:
    """OpenAI's SDK closes the connection at `[DONE]`: the usage is still known."""

    class Lingering(Provider):
        async def stream(self, request: web.Request, frames: Sequence[bytes]) -> web.StreamResponse:
            reply = web.StreamResponse(headers={"content-type": "text/event-stream"})
            await reply.prepare(request)
            await reply.write(b"".join(frames))
            await asyncio.sleep(30)  # the end of the stream does not come
            return reply

    with gateway_to(Lingering(back)) as (serving, records):
        raw = json.dumps(body_for("openai-chat", stream=True)).encode()
        host, port = serving.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\n"
            connection.sendall(f"{head}content-length: {len(raw)}\r\n\r\n".encode() + raw)
            came = b""
            while b"[DONE]" not in came:
                came += connection.recv(4096)
        for _ in range(500):
            if records:
                break
            threading.Event().wait(0.02)
    assert (records[0].left, records[0].status) == (False, 200)
    assert records[0].usage == Usage(input=11, output=7)


def test_thinking_returns_to_its_provider_through_another_front() -> None:
    """Sealed state survives two turns: a Chat client with Anthropic's thinking."""
    from dragoman.model.parts import Origin, Text, Thinking

    origin = Origin(dialect="anthropic")
    thought = Thinking("It is in Bosnia.", signature="c2lnbmVk", origin=origin)
    model = "claude-sonnet-4-5-20250929"
    provider = Provider("anthropic", said(thought, Text(SAID), model=model))
    with gateway_to(provider) as (serving, _):
        path = path_for("openai-chat")
        first = ask(serving.url, path, body_for("openai-chat", model="claude-sonnet-4-5")).json
        turns = [
            {"role": "user", "content": "Where?"},
            first["choices"][0]["message"],
            {"role": "user", "content": "Sure?"},
        ]
        body = {"model": "claude-sonnet-4-5", "messages": turns, "reasoning_effort": "high"}
        assert ask(serving.url, path, body).status == 200
    sent = provider.asked[1]["messages"][1]["content"]
    assert sent[0] == {"type": "thinking", "thinking": "It is in Bosnia.", "signature": "c2lnbmVk"}


def test_losses_are_counted_in_a_header() -> None:
    """The client learns how many parts of its request the provider doesn't support."""
    with gateway_to(Provider("anthropic")) as (serving, records):
        body = {**body_for("openai-chat"), "logit_bias": {"50256": -100}, "seed": 4}
        answer = ask(serving.url, path_for("openai-chat"), body)
    assert answer.headers["x-dragoman-losses"].startswith("2; ")
    assert len(records[0].losses) == 2


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/v1/nothing", "POST", 404),
        ("/v1/chat/completions", "GET", 405),
        ("/v1/messages", "PUT", 405),
        ("/health", "GET", 200),
        ("/", "HEAD", 200),
        ("/ready", "GET", 200),
    ],
)
def test_paths_and_methods(path: str, method: str, status: int) -> None:
    """An unknown path is a 404, a wrong method a 405 that lists the allowed ones."""
    with running(GatewayConfig()) as serving:
        answer = ask(serving.url, path, method=method)
    assert answer.status == status
    if status == 405:
        assert answer.headers["allow"] == "POST"


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":' * 999,
    ],
)
def test_malformed_bodies_are_rejected_and_the_next_request_is_served(
    front: str, body: bytes
) -> None:
    """With a 400 in the front's form."""
    with gateway_to(Provider(front)) as (serving, _):
        answer = ask(serving.url, path_for(front), body)
        good = ask(serving.url, path_for(front), body_for(front))
    assert answer.status == 400, answer.body
    assert "error" in answer.json
    assert good.status == 200


def test_limits_on_bodies_apply_to_compressed_ones_too() -> None:
    """A body over the limit is a 413, however it is sent; a compressed one within it is served."""
    import gzip

    with gateway_to(Provider("openai-chat"), max_body=10_000) as (serving, _):
        path = path_for("openai-chat")
        large = body_for("openai-chat", "x" * 20_000)
        assert ask(serving.url, path, large).status == 413
        packed = gzip.compress(json.dumps(large).encode())
        assert ask(serving.url, path, packed, content_encoding="gzip").status == 413
        small = gzip.compress(json.dumps(body_for("openai-chat")).encode())
        assert ask(serving.url, path, small, content_encoding="gzip").status == 200
        assert ask(serving.url, path, small[:-9], content_encoding="gzip").status == 400
        assert ask(serving.url, path, small, content_encoding="br").status == 415


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:8421"}, 200),
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": "[::1]:8421", "origin": "http://[::1]:8421"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "localhost", "origin": "http://localhost:3000"}, 403),
    ],
)
def test_without_keys_pages_of_other_sites_are_rejected(
    headers: dict[str, str], status: int
) -> None:
    """DNS rebinding and cross-origin requests get a 403 on every path."""
    with gateway_to(Provider("openai-chat")) as (serving, _):
        path = path_for("openai-chat")
        assert ask(serving.url, path, body_for("openai-chat"), **headers).status == status
        assert ask(serving.url, "/health", method="GET", **headers).status == status


def test_a_renamed_model_keeps_its_thinking() -> None:
    """A route that renames the model returns signed thinking unchanged."""
    provider = Provider("anthropic")
    with gateway_to(provider) as (serving, records):
        thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}
        turns = [
            {"role": "user", "content": "Where?"},
            {"role": "assistant", "content": [thought, {"type": "text", "text": "There."}]},
            {"role": "user", "content": "Sure?"},
        ]
        body: dict[str, Any] = {"model": "place0:claude-sonnet-4-5", "max_tokens": 2000}
        body["messages"] = turns
        body["thinking"] = {"type": "enabled", "budget_tokens": 1024}
        assert ask(serving.url, "/v1/messages", body).status == 200
    assert provider.asked[0]["messages"][1]["content"][0] == thought
    assert records[0].passes
    assert records[0].usage == Usage(input=11, output=7)
