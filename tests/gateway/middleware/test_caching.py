"""The response cache over real sockets: what is cached, for whom, and what never is."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace

from dragoman.errors import AuthenticationError
from dragoman.gateway.keys.records import KeyRecord
from dragoman.gateway.middleware import Info
from dragoman.model.parts import Text
from dragoman.model.requests import Request
from dragoman.model.usage import Usage
from tests.gateway.answers import SAID, Provider, frames_of, said
from tests.gateway.client_requests import FRONTS, Answer, ask, body_for, path_for, text_in
from tests.gateway.middleware.conftest import Stage

HEADER = "x-dragoman-cache"
both_ways = pytest.mark.parametrize("stream", [False, True])


@pytest.fixture(autouse=True)
def _fresh(stage: Stage) -> None:
    """An empty cache."""
    stage.gateway.cache._store._kept.clear()  # type: ignore[attr-defined]


@both_ways
@pytest.mark.parametrize("front", FRONTS)
def test_the_same_request_gets_the_same_answer_again(
    stage: Stage, front: str, stream: bool
) -> None:
    """Byte for byte, without a model call and cost; a stream stays a stream."""
    for back in dict.fromkeys(("anthropic", front, "here")):
        before = len(stage.records)
        model = f"cached-{back}"
        first = stage.ask(front, stream=stream, model=model)
        second = stage.ask(front, stream=stream, model=model)
        assert (first.headers[HEADER], second.headers[HEADER]) == ("miss", "hit")
        assert second.body == first.body
        assert second.headers["content-type"] == first.headers["content-type"]
        assert text_in(front, second, stream=stream)
        one, two = stage.records[before:]
        assert (one.cached, two.cached, two.cost) == (False, True, Decimal(0))
        assert two.usage == Usage()
        assert (two.attempts, two.status) == (0, 200)
    assert len(stage.providers["anthropic"].asked) == 1


def test_routes_without_a_cache_have_none(stage: Stage) -> None:
    """It is opt-in."""
    assert HEADER not in stage.ask("anthropic").headers
    assert HEADER not in stage.ask("anthropic").headers
    assert len(stage.providers["anthropic"].asked) == 2


def _raw(stage: Stage, body: bytes, path: str = "/v1/messages", **headers: str) -> Answer:
    stage.asked += 1
    return ask(stage.serving.url, path, body, **headers)


def _body(**changes: Any) -> bytes:
    return json.dumps({**body_for("anthropic", model="cached-anthropic"), **changes}).encode()


def test_requests_that_differ_in_anything_are_not_the_same(stage: Stage) -> None:
    """Another byte, front, path, header or model: each calls the model."""
    plain = _body()
    asked = [
        _raw(stage, plain),
        _raw(stage, plain.replace(b'"Where?"', b'"Where??"')),
        _raw(stage, plain + b" "),
        _raw(stage, _body(temperature=1)),
        _raw(stage, _body(stream=True)),
        _raw(stage, plain.replace(b"64", b"64.0")),
        _raw(stage, plain, anthropic_beta="context-1m-2025-08-07"),
        _raw(stage, plain, anthropic_beta="another"),
        _raw(stage, plain, "/v1/messages?beta=true"),
        _raw(stage, plain, "/v1/chat/completions"),
        _raw(stage, plain, "/v1/chat/completions", user_agent="mistral-client-python/3.7.0"),
        _raw(stage, plain.replace(b"cached-anthropic", b"cached-both")),
    ]
    assert [answer.headers.get(HEADER) for answer in asked] == ["miss"] * len(asked)
    again = _raw(stage, plain, user_agent="another", x_request_id="another")
    assert again.headers[HEADER] == "hit"


def test_repeated_names_make_another_request(stage: Stage) -> None:
    """JSON is not normalised: parsers differ in which of two values they use.

    At the top level, such a request is refused.
    """
    one = b'{"model":"cached-anthropic","max_tokens":9,"messages":[{"role":"user","content":"a"}]}'
    two = one[:-1] + b',"messages":[{"role":"user","content":"a"}]}'
    three = one.replace(b'"content":"a"', b'"content":"b","content":"a"')
    assert _raw(stage, two).status == 400
    assert [_raw(stage, body).headers[HEADER] for body in (one, three)] == ["miss"] * 2


class Keyring:
    """Keys that are their own ids."""

    def recall(self, _presented: str) -> None:
        """Nothing is remembered."""

    async def authenticate(self, presented: str, _peer: str = "") -> KeyRecord:
        """Any that begins well."""
        if not presented.startswith("key"):
            msg = "no"
            raise AuthenticationError(msg, status=401)
        return KeyRecord(id=presented)

    async def expect_open(self, *_given: Any, **_more: Any) -> None:
        """Every key has something left."""

    async def reserve(self, key: KeyRecord, *_given: Any) -> Any:
        """Nothing is limited."""
        return key

    async def settle(self, _reservation: Any, spent: Any) -> None:
        """Note it."""
        self.spent.append((spent.tokens_in, spent.tokens_out, spent.cost))

    async def release(self, reservation: Any) -> None:
        """Note it."""
        self.released.append(reservation)

    async def close(self) -> None:
        """Nothing to close."""

    def __init__(self) -> None:
        self.spent: list[Any] = []
        self.released: list[Any] = []


def test_answers_are_never_shared_between_keys_and_hits_are_free(stage: Stage) -> None:
    """Each key has its own; without a key there is none; a hit is settled with zero."""
    keyring = Keyring()
    stage.gateway.keys = keyring  # type: ignore[assignment]
    try:
        seen = [_raw(stage, _body(), x_api_key=key).headers.get(HEADER)
                for key in ("key1", "key2", "key1", "key2", "none")]  # fmt: skip
        assert stage.records
    finally:
        stage.gateway.keys = None
    assert seen == ["miss", "miss", "hit", "hit", None]
    assert [spent[:2] for spent in keyring.spent] == [(11, 7), (11, 7), (0, 0), (0, 0)]
    assert keyring.spent[-1][2] == 0
    assert _raw(stage, _body()).headers[HEADER] == "miss"  # no key is not any key


@pytest.mark.parametrize(
    "changes",
    [
        {"previous_response_id": "resp_1"},
        {"store": True},
        {"background": True},
        {"conversation": "conv_1"},
        {"input": [{"type": "item_reference", "id": "x"}, {"role": "user", "content": "?"}]},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_requests_with_state_are_not_cached(stage: Stage, changes: dict[str, Any]) -> None:
    """Stored responses, and references to stored ones, always call the model."""
    model = "cached-openai-responses"
    body = json.dumps({"model": model, "input": "?", **changes}).encode()
    for _ in range(2):
        assert HEADER not in _raw(stage, body, "/v1/responses").headers


def test_a_client_may_bypass_the_cache(stage: Stage) -> None:
    """`cache-control: no-cache` calls the model."""
    _raw(stage, _body())
    assert HEADER not in _raw(stage, _body(), cache_control="no-cache").headers
    assert _raw(stage, _body()).headers[HEADER] == "hit"


class Failing(Provider):
    """Rejects the first request, or interrupts its stream."""

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Answer."""
        body = json.loads(await request.read())
        self.asked.append(body)
        if len(self.asked) > 1:
            self.asked.pop()
            request._read_bytes = json.dumps(body).encode()
            return await super().__call__(request)
        if not body.get("stream"):
            return web.json_response({"error": {"message": "no"}}, status=529)
        reply = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await reply.prepare(request)
        await reply.write(b"".join(frames_of("anthropic", said())[:2]))
        await reply.write_eof()
        return reply


@both_ways
@pytest.mark.parametrize("front", ["anthropic", "openai-chat"])
def test_only_complete_answers_are_cached(stage: Stage, front: str, stream: bool) -> None:
    """Neither errors nor interrupted streams."""
    stage.providers["anthropic"].__class__ = Failing
    model = "cached-anthropic"
    assert b"error" in stage.ask(front, model=model, stream=stream).body
    answer = stage.ask(front, model=model, stream=stream)
    assert (answer.headers[HEADER], text_in(front, answer, stream=stream)) == ("miss", SAID)
    assert stage.ask(front, model=model, stream=stream).headers[HEADER] == "hit"


def test_large_answers_are_not_cached(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit, each request calls the model, and memory holds nothing of it."""
    monkeypatch.setattr("dragoman.gateway.caching.recording.MAX_BODY_BYTES", 1000)
    stage.providers["anthropic"].answers = [said(Text("x" * 2000))]
    for stream in (False, True):
        for _ in range(2):
            answer = stage.ask("openai-chat", stream=stream, model="cached-anthropic")
            assert answer.headers[HEADER] == "miss"
            assert text_in("openai-chat", answer, stream=stream) == "x" * 2000
    assert len(stage.gateway.cache._store) == 0  # type: ignore[arg-type]


def test_a_changed_configuration_empties_the_cache(stage: Stage) -> None:
    """Settings of a route and of its providers are part of the cache key."""
    config = stage.gateway.config
    _raw(stage, _body())
    try:
        stage.gateway.apply(config)
        assert _raw(stage, _body()).headers[HEADER] == "hit"  # nothing changed
        routes = tuple(replace(route, fixed={"temperature": 0.5}) for route in config.routes)
        stage.gateway.apply(replace(config, routes=routes))
        assert _raw(stage, _body()).headers[HEADER] == "miss"
    finally:
        stage.gateway.apply(config)


class Gate(Provider):
    """Answers when told to."""

    opened: threading.Event
    asked_now: threading.Semaphore

    async def wait(self) -> None:
        """Wait until it may answer, in another thread."""
        while not self.opened.is_set():  # noqa: ASYNC110 - that thread has no loop
            await asyncio.sleep(0.005)

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Answer."""
        await request.read()
        self.asked_now.release()
        await self.wait()
        return await super().__call__(request)


def _gate(stage: Stage) -> Any:
    provider: Any = stage.providers["anthropic"]
    provider.__class__ = Gate
    provider.opened, provider.asked_now = threading.Event(), threading.Semaphore(0)
    return provider


def _waiting(stage: Stage, count: int) -> None:
    """Wait until that many requests wait for the answer to another."""
    flights = stage.gateway.cache._flights
    while sum(len(flight._waiting) for flight in list(flights._flying.values())) < count:
        threading.Event().wait(0.005)


@both_ways
def test_concurrent_identical_requests_call_the_model_once(stage: Stage, stream: bool) -> None:
    """All get its answer."""
    gate = _gate(stage)
    with ThreadPoolExecutor(8) as pool:
        asked = [
            pool.submit(stage.ask, "openai-chat", stream=stream, model="cached-anthropic")
            for _ in range(8)
        ]
        _waiting(stage, 7)
        gate.opened.set()
        answers = [each.result() for each in asked]
    assert len(gate.asked) == 1
    assert len({answer.body for answer in answers}) == 1
    assert sorted(answer.headers[HEADER] for answer in answers) == ["hit"] * 7 + ["miss"]
    assert len(stage.gateway.cache._flights) == 0


def test_if_the_first_client_disconnects_the_next_one_calls_the_model(stage: Stage) -> None:
    """The others still get one answer, with one more call."""
    gate = _gate(stage)
    body = json.dumps(body_for("openai-chat", model="cached-anthropic")).encode()
    host, port = stage.serving.url.removeprefix("http://").split(":")
    stage.asked += 1
    with ThreadPoolExecutor(4) as pool:
        with socket.create_connection((host, int(port))) as leader:
            head = f"POST {path_for('openai-chat')} HTTP/1.1\r\nhost: {host}\r\n"
            leader.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            assert gate.asked_now.acquire(timeout=10)
            asked = [pool.submit(stage.ask, "openai-chat", model="cached-anthropic")
                     for _ in range(4)]  # fmt: skip
            _waiting(stage, 4)
        assert gate.asked_now.acquire(timeout=10)
        gate.opened.set()
        answers = [each.result() for each in asked]
    assert [text_in("openai-chat", answer) for answer in answers] == [SAID] * 4
    assert sorted(answer.headers[HEADER] for answer in answers) == ["hit"] * 3 + ["miss"]
    assert len(stage.gateway.cache._flights) == 0


def test_if_the_first_request_fails_the_others_call_the_model_concurrently(stage: Stage) -> None:
    """Each gets its own error, and nobody waits for ever."""

    class Down(Gate):
        async def __call__(self, request: web.Request) -> web.StreamResponse:
            self.asked.append(await request.read())
            await self.wait()
            return web.json_response({"error": {"message": "no"}}, status=529)

    gate = _gate(stage)
    gate.__class__ = Down
    with ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(stage.ask, "openai-chat", model="cached-anthropic") for _ in range(6)]
        _waiting(stage, 5)
        gate.opened.set()
        assert [each.result().status // 100 for each in asked] == [5] * 6
    assert len(gate.asked) == 6
    assert len(stage.gateway.cache._flights) == 0


def test_middleware_runs_before_the_cache_and_is_part_of_its_key(stage: Stage) -> None:
    """A guard runs at each hit; headers that it reads are part of the cache key."""

    async def before(request: Request, info: Info) -> Request:
        asked.append(1)
        tenant = info.headers.get("x-tenant", "none")
        return request.replace(system=(Text(f"You serve {tenant}."),))

    asked: list[int] = []
    stage.use(before)
    tenants = ("a", "b", "a", "")
    seen = [_raw(stage, _body(), x_tenant=name).headers[HEADER] for name in tenants]
    assert seen == ["miss", "miss", "hit", "miss"]
    assert len(asked) == 4
    asked_for = [body["system"] for body in stage.providers["anthropic"].asked[:2]]
    assert asked_for == ["You serve a.", "You serve b."]


def test_answers_that_depend_on_more_are_not_cached(stage: Stage) -> None:
    """If middleware says so, or reads a header too late."""

    class Late:
        def on_event(self, event: Any, info: Info) -> Any:
            info.headers.get("x-tenant")
            return event

    class Saying:
        async def before(self, _request: Request, info: Info) -> None:
            info.is_cacheable = False

    stage.use(Late)
    assert [_raw(stage, _body()).headers[HEADER] for _ in range(2)] == ["miss", "miss"]
    stage.use(Saying)
    assert HEADER not in _raw(stage, _body()).headers
