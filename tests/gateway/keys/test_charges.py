"""What a key is charged is never less than what was delivered, whatever the request says.

A stream reports its usage at its end, and clients may hang up before it.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from http.client import HTTPConnection
from random import Random
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from msgspec.structs import replace
from websockets.sync.client import connect

from dragoman.gateway.config.settings import Hop, RouteSettings
from dragoman.gateway.delivered import BLOCK, MIN_BYTES_PER_TOKEN
from dragoman.gateway.keys import Spent
from dragoman.gateway.limits import maximum_of
from dragoman.gateway.pricing import PricedModels
from dragoman.model.parts import Text, Thinking
from dragoman.model.usage import Usage
from dragoman.providers.price import Price
from dragoman.wire.dialect import dialect
from tests.environment import PATIENCE
from tests.gateway.answers import KINDS, Provider, frames_of, is_streaming, said
from tests.gateway.client_requests import FRONTS, ask, body_for, path_for
from tests.gateway.running import Serving, place, routed, running, upstream
from tests.gateway.services.test_keys import ScriptedKeys

_LIMITS: dict[str, Any] = {
    "openai-chat": {"max_completion_tokens": 1},
    "openai-responses": {"max_output_tokens": 1},
    "anthropic": {"max_tokens": 1},
    "gemini": {"generationConfig": {"maxOutputTokens": 1}},
    "ollama": {"options": {"num_predict": 1}},
}
_ODD: dict[str, Sequence[tuple[Any, int]]] = {
    "openai-chat": [
        ({"max_tokens": 16.0}, 16), ({"max_tokens": "50000"}, 50_000), ({"max_tokens": -1}, 50_000),
        ({"max_tokens": 50_000, "max_completion_tokens": 1}, 50_000),
        ({"n": 100_000.0, "max_tokens": 1}, 100_000), ({"n": "9", "max_tokens": 1}, 9),
        ({"max_completion_tokens": 1, "n_predict": 50_000}, 50_000),
        ({"max_tokens": 1, "max_new_tokens": -1}, 50_000), ({"max_tokens": True}, 50_000),
        ({"max_tokens": [9]}, 50_000), ({"n": -3, "max_tokens": 100}, 100),
        ({"best_of": 20, "n": 1, "max_tokens": 10}, 200), ({"n_cmpl": 20, "max_tokens": 10}, 200),
        ({"max_tokens": None, "max_completion_tokens": 1e9}, 10**9),
    ],
    "openai-responses": [
        ({"max_output_tokens": 16.0}, 16), ({"max_output_tokens": "50000"}, 50_000),
        ({"max_output_tokens": -1}, 50_000), ({"max_output_tokens": {}}, 50_000),
    ],
    "anthropic": [
        ({"max_tokens": 16.0}, 16), ({"max_tokens": "50000"}, 50_000), ({"max_tokens": -1}, 50_000),
    ],
    "gemini": [
        ({key: {name: value, count: 3}}, 3 * expected)
        for key in ("generationConfig", "generation_config")
        for name, count in (("maxOutputTokens", "candidateCount"),
                            ("max_output_tokens", "candidate_count"))
        for value, expected in ((16.0, 16), ("50000", 50_000), (-1, 50_000))
    ],
    "ollama": [
        ({"options": {"num_predict": value}}, expected)
        for value, expected in ((16.0, 16), ("50000", 50_000), (-1, 50_000), (0, 50_000))
    ],
}  # fmt: skip
"""Settings, and the least that must be reserved for them."""


class Writer(Provider):
    """Streams one word again and again: a token in each frame, and no usage."""

    def __init__(self, name: str, word: str = "a", count: int = 400, *, ends: bool = False) -> None:
        super().__init__(name)
        self.word, self.count, self.ends = word, count, ends

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Stream, or answer in one piece, without saying what was used."""
        body = json.loads(await request.read() or b"{}")
        self.asked.append(body)
        if not is_streaming(self.name, request, body):
            answer = said(Text(self.word * self.count), usage=None)
            made = dialect(self.name).encode_response(answer).to_bytes()
            return web.Response(body=made, content_type="application/json")
        kind = "application/x-ndjson" if self.name == "ollama" else "text/event-stream"
        reply = web.StreamResponse(headers={"content-type": kind})
        await reply.prepare(request)
        whole = b"".join(frames_of(self.name, said(Text(self.word), usage=None), body))
        end = b"\n" if self.name == "ollama" else b"\n\n"
        frames = [frame + end for frame in whole.split(end) if frame]
        place = next(n for n, frame in enumerate(frames) if self._is_delta(frame))
        await reply.write(b"".join(frames[:place]))
        for start in range(0, self.count, 50):
            await reply.write(frames[place] * min(50, self.count - start))
        if self.ends:
            await reply.write(b"".join(frames[place + 1 :]))
            await reply.write_eof()
        else:
            await asyncio.Event().wait()  # until the gateway leaves
        return reply

    def _is_delta(self, frame: bytes) -> bool:
        mark = json.dumps(self.word, ensure_ascii=False).encode()
        return mark in frame and b".done" not in frame


@contextmanager
def charging(
    *providers: Provider, history: str | None = None, **route: Any
) -> Generator[tuple[Serving, ScriptedKeys]]:
    """A gateway with scripted keys in front of these providers."""
    with ExitStack() as stack:
        places = [
            place(f"place{n}", KINDS[each.name], stack.enter_context(upstream(each)),
                  dialect=each.name)
            for n, each in enumerate(providers)
        ]  # fmt: skip
        config = routed(*places, **({"history": history} if history else {}))
        if route:
            hops = tuple(Hop(place=each) for each in places)
            config = replace(config, routes=(RouteSettings(model="*", to=hops, **route),))
        serving = stack.enter_context(running(config))
        keys: Any = ScriptedKeys()
        serving.gateway.keys = keys
        yield serving, keys


def _settled(keys: ScriptedKeys, count: int = 1) -> list[Spent]:
    """What was charged, once that many requests are."""
    deadline = monotonic() + PATIENCE
    while len(keys.settled) + keys.released < count and monotonic() < deadline:
        threading.Event().wait(0.005)
    assert len(keys.settled) == count, (keys.settled, keys.released)
    return keys.settled


def _total(spent: Spent) -> int:
    return spent.tokens_in + spent.tokens_out


def _hang_up(serving: Serving, path: str, body: Any, after: int) -> bytes:
    """Read that many bytes of a stream, and leave."""
    at = urlsplit(serving.url)
    connection = HTTPConnection(at.hostname or "", at.port, timeout=PATIENCE)
    headers = {"content-type": "application/json", "x-api-key": "small"}
    connection.request("POST", path, json.dumps(body).encode(), headers)
    reply, data = connection.getresponse(), bytearray()
    try:
        assert reply.status == 200, reply.read()
        while len(data) < after:
            data += (piece := reply.read1(after - len(data)))
            assert piece, "the stream ended"
    finally:
        reply.close()
        connection.close()
    return bytes(data)


def _heard(front: str, data: bytes) -> str:
    """The text in the beginning of a stream."""
    decoder = dialect(front).stream_decoder()
    decoder.feed(data)
    parts = [part for choice in decoder.response.choices for part in choice.message.parts]
    return "".join(part.text for part in parts if isinstance(part, (Text, Thinking)))


@pytest.mark.parametrize("front", FRONTS)
def test_hanging_up_is_charged_as_much_as_was_heard(front: str) -> None:
    """At random bytes, passed through and translated, with every spelling of a limit."""
    draw = Random(7)
    limits = [_LIMITS[front], *(settings for settings, _ in _ODD[front])]
    for back in (front, "anthropic" if front != "anthropic" else "openai-chat"):
        provider = Writer(back)
        with charging(provider) as (serving, keys):
            path = path_for(front, stream=True, model="m1")
            for number, limit in enumerate(limits):
                body = {**body_for(front, stream=True, model="m1"), **limit}
                data = _hang_up(serving, path, body, draw.randrange(200, 25_000))
                spent = _settled(keys, number + 1)[-1]
                heard = len(_heard(front, data))
                assert spent.tokens_out >= heard, (back, limit, len(data))
                assert _total(spent) >= keys.reserved[-1][2]


@pytest.mark.parametrize("front", FRONTS)
def test_every_spelling_of_a_limit_is_reserved(front: str) -> None:
    """The largest of them, times the answers; what is no whole number is the model's maximum."""
    with charging(Provider(front)) as (serving, keys):
        for settings, least in _ODD[front]:
            body = {**body_for(front, model="m1"), **settings}
            ask(serving.url, path_for(front, model="m1"), body, x_api_key="small")
            assert least <= keys.reserved[-1][2] < max(4 * least, 10**6), settings


def test_a_routes_fixed_limit_is_what_is_reserved() -> None:
    """It replaces what the request says, in whatever spelling."""
    body = {**body_for("openai-chat", model="m1"), "max_tokens": "50000", "n_predict": -1}
    with charging(Provider("openai-chat"), fixed={"max_tokens": 9}) as (serving, keys):
        ask(serving.url, "/v1/chat/completions", body, x_api_key="small")
    assert keys.reserved[0][2] < 60


def test_the_maximum_is_that_of_the_largest_model() -> None:
    """Known output limits count; for an unknown model, a large one."""
    names = [("openai", "gpt-4o-mini"), ("anthropic", "claude-opus-4-1")]
    largest = max(maximum_of([each]) for each in names)
    assert maximum_of(names) == largest
    assert maximum_of([("openai-compatible", "unheard-of")]) >= 100_000


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("stream", [False, True])
def test_an_upstream_that_reports_nothing(front: str, stream: bool) -> None:
    """Complete answers without usage cost what was reserved, or what came if that is more."""
    for back in (front, "ollama"):
        provider = Writer(back, count=3_000, ends=True)
        with charging(provider) as (serving, keys):
            path = path_for(front, stream=stream, model="m1")
            body = {**body_for(front, stream=stream, model="m1"), **_LIMITS[front]}
            answer = ask(serving.url, path, body, x_api_key="small")
            assert answer.status == 200, answer.body
            [spent] = _settled(keys)
        least = 3_000 if stream and front == back else 3_000 // MIN_BYTES_PER_TOKEN
        assert spent.tokens_out >= least, back


class _Understating(Provider):
    """Says that long answers cost next to nothing."""

    def __init__(self, name: str, usage: Usage) -> None:
        super().__init__(name, said(Text("word " * 10_000), usage=usage))


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("usage", [Usage(), Usage(input=3, output=1)], ids=["zeros", "too low"])
def test_reports_that_cannot_be_true_are_not_believed(front: str, usage: Usage) -> None:
    """Fewer tokens than one in sixteen bytes: the answer is charged by its size."""
    for back in (front, "anthropic" if front != "anthropic" else "gemini"):
        with charging(_Understating(back, usage)) as (serving, keys):
            for number, stream in enumerate((False, True)):
                path = path_for(front, stream=stream, model="m1")
                body = {**body_for(front, stream=stream, model="m1"), **_LIMITS[front]}
                assert ask(serving.url, path, body, x_api_key="small").status == 200
                spent = _settled(keys, number + 1)[-1]
                assert spent.tokens_out >= 10_000, (back, stream)


@pytest.mark.parametrize("front", FRONTS)
def test_complete_answers_cost_what_is_reported(front: str) -> None:
    """Normal requests are charged neither their reservation nor their size."""
    usage = Usage(input=500, output=2_100)
    for back in (front, "ollama"):
        long = said(Text("A usual sentence of five words. " * 300), usage=usage)
        with charging(Provider(back, long)) as (serving, keys):
            for number, stream in enumerate((False, True)):
                path = path_for(front, stream=stream, model="m1")
                body = body_for(front, stream=stream, model="m1")
                assert ask(serving.url, path, body, x_api_key="small").status == 200
                spent = _settled(keys, number + 1)[-1]
                assert (spent.tokens_in, spent.tokens_out) == (500, 2_100), (back, stream)


_LARGE = "A" * 400_000
_TOOLS = [{"type": "function", "name": f"f{n}", "description": "d" * 1500, "parameters": None}
          for n in range(40)]  # fmt: skip
_RESULTS = [{"type": "web_search_result", "encrypted_content": "E" * 8_000} for _ in range(30)]
_HEARD = {"type": "message", "id": "i", "role": "assistant", "status": "completed",
          "content": [{"type": "output_text", "text": "Hi.", "annotations": []}]}  # fmt: skip
_ECHO = {"id": "r", "object": "response", "created_at": 1, "model": "m1", "tools": _TOOLS}
_SURROUNDED: dict[str, tuple[str, Sequence[Any]]] = {
    "request repeated": ("openai-responses", [
        {"type": "response.created", "response": {**_ECHO, "status": "in_progress", "output": []}},
        {"type": "response.in_progress",
         "response": {**_ECHO, "status": "in_progress", "output": []}},
        {"type": "response.output_text.delta", "item_id": "i", "output_index": 0,
         "content_index": 0, "delta": "Hi."},
        {"type": "response.completed", "response": {
            **_ECHO, "status": "completed", "output": [_HEARD],
            "usage": {"input_tokens": 9_000, "output_tokens": 40, "total_tokens": 9_040}}},
    ]),
    "search results": ("anthropic", [
        {"type": "message_start", "message": {
            "id": "m", "type": "message", "role": "assistant", "model": "m1", "content": [],
            "usage": {"input_tokens": 9_000, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {
            "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": _RESULTS}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"},
         "usage": {"output_tokens": 40}},
        {"type": "message_stop"},
    ]),
    "image": ("gemini", [
        {"candidates": [{"content": {"role": "model", "parts": [
            {"inlineData": {"mimeType": "image/png", "data": _LARGE}}]}}]},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "."}]},
                         "finishReason": "STOP"}],
         "usageMetadata": {"promptTokenCount": 9_000, "candidatesTokenCount": 40,
                           "totalTokenCount": 9_040}},
    ]),
    "grounding": ("gemini", [
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi."}]},
                         "finishReason": "STOP",
                         "groundingMetadata": {"searchEntryPoint": {"renderedContent": _LARGE}}}],
         "usageMetadata": {"promptTokenCount": 9_000, "candidatesTokenCount": 40,
                           "totalTokenCount": 9_040}},
    ]),
    "audio": ("openai-chat", [
        {"id": "c", "model": "m1", "choices": [
            {"index": 0, "delta": {"role": "assistant", "audio": {"id": "a", "data": _LARGE}}}]},
        {"id": "c", "model": "m1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
         "usage": {"prompt_tokens": 9_000, "completion_tokens": 40, "total_tokens": 9_040}},
        "[DONE]",
    ]),
}  # fmt: skip
"""Complete streams of which next to nothing is the model's text, with what they report."""


class _Replaying(Provider):
    """Streams given frames."""

    def __init__(self, name: str, frames: Sequence[Any], *, ends: bool = True) -> None:
        super().__init__(name)
        self.frames = [_frame(each) for each in frames]
        self.ends = ends

    async def stream(self, request: web.Request, frames: Sequence[bytes]) -> web.StreamResponse:
        del frames
        if self.ends:
            return await super().stream(request, self.frames)
        kind = "application/x-ndjson" if self.name == "ollama" else "text/event-stream"
        reply = web.StreamResponse(headers={"content-type": kind})
        await reply.prepare(request)
        for frame in self.frames:
            await reply.write(frame)
        await asyncio.Event().wait()  # until the gateway leaves
        return reply


def _frame(data: Any) -> bytes:
    if isinstance(data, bytes):
        return data
    kind = data.get("type") if isinstance(data, dict) else None
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {kind}\n" if kind else "").encode() + f"data: {text}\n\n".encode()


@pytest.mark.parametrize("case", _SURROUNDED)
def test_what_surrounds_the_content_is_not_charged(case: str) -> None:
    """Repeated requests, images and search results make no report incredible."""
    front, frames = _SURROUNDED[case]
    for told in (front, "openai-chat" if front != "openai-chat" else "anthropic"):
        with charging(_Replaying(front, frames)) as (serving, keys):
            path = path_for(told, stream=True, model="m1")
            body = body_for(told, stream=True, model="m1")
            assert ask(serving.url, path, body, x_api_key="small").status == 200
            [spent] = _settled(keys)
        assert (spent.tokens_in, spent.tokens_out) == (9_000, 40), told


@pytest.mark.parametrize("front", FRONTS)
def test_frames_that_change_in_the_middle_of_a_stream(front: str) -> None:
    """Long frames of little text don't make the text of later ones look like less."""
    word, end = "abc ", b"\n" if front == "ollama" else b"\n\n"
    whole = b"".join(frames_of(front, said(Text(word), usage=None)))
    begun = [frame + end for frame in whole.split(end) if frame]
    mark = json.dumps(word).encode()
    place = next(n for n, each in enumerate(begun) if mark in each and b".done" not in each)
    padded = begun[place].replace(b"{", b'{"padding":"%b",' % (b"o" * 3_000), 1)
    long = begun[place].replace(mark, json.dumps(word * 100).encode())
    frames = [*begun[:place], *[padded] * 60, *[long] * 300]
    with charging(_Replaying(front, frames, ends=False)) as (serving, keys):
        path = path_for(front, stream=True, model="m1")
        body = {**body_for(front, stream=True, model="m1"), **_LIMITS[front]}
        data = _hang_up(serving, path, body, sum(map(len, frames)) - 5_000)
        [spent] = _settled(keys)
    assert spent.tokens_out >= _heard(front, data).count(" ") > 25_000


def test_long_streams_are_measured_as_they_pass() -> None:
    """What was heard is told from what surrounds it, however long the stream is."""
    word, count = "abcd " * 4, 3_000
    for front in FRONTS:
        with charging(Writer(front, word, count)) as (serving, keys):
            path = path_for(front, stream=True, model="m1")
            body = {**body_for(front, stream=True, model="m1"), **_LIMITS[front]}
            data = _hang_up(serving, path, body, 4 * BLOCK)
            heard = len(_heard(front, data))
            [spent] = _settled(keys)
        exact = heard / MIN_BYTES_PER_TOKEN
        assert exact <= spent.tokens_out, front
        assert spent.tokens_out <= 1.1 * count * len(word) / MIN_BYTES_PER_TOKEN, front


def test_the_cost_of_a_stream_that_was_left_is_that_of_what_came() -> None:
    """Budgets in dollars are charged for what was delivered, at the model's price."""
    body = {**body_for("openai-chat", stream=True, model="m1"), "max_completion_tokens": 1}
    with charging(Writer("openai-chat")) as (serving, keys):
        serving.gateway.prices = PricedModels({"m1": Price(1, 1)})
        data = _hang_up(serving, "/v1/chat/completions", body, 20_000)
        [spent] = _settled(keys)
    assert spent.cost is not None
    assert spent.cost >= len(_heard("openai-chat", data)) * Decimal("1e-6")


def test_several_prompts_are_charged_as_much_as_was_heard() -> None:
    """A client that leaves pays for all prompts that were answered in part."""
    body = {"model": "m1", "prompt": ["a", "b"], "max_tokens": 1, "stream": True}
    with charging(Writer("openai-chat")) as (serving, keys):
        data = _hang_up(serving, "/v1/completions", body, 20_000)
        [spent] = _settled(keys)
    assert spent.tokens_out >= data.count(b'"text":"a"') > 20


def test_token_ids_are_counted() -> None:
    """Those of Ollama's context take two bytes each, and some providers don't report them."""
    asked = {"model": "m1", "prompt": "x", "context": [7] * 5_000, "options": {"num_predict": 1}}
    body = json.dumps({**asked, "stream": False}, separators=(",", ":")).encode()
    with charging(Writer("ollama", count=3)) as (serving, keys):
        assert ask(serving.url, "/api/generate", body, x_api_key="small").status == 200
        [spent] = _settled(keys)
    assert spent.tokens_in >= 5_000


def test_embeddings_cost_no_less_than_their_inputs() -> None:
    """Token ids are counted, and reports of nothing are not believed."""
    inputs: list[Any] = [[1] * 5_000, ["word " * 20_000]]
    for given, least in zip(inputs, (5_000, 20_000), strict=True):
        with charging(_Embedding("openai-chat")) as (serving, keys):
            body = {"model": "m1", "input": given}
            answer = ask(serving.url, "/v1/embeddings", body, x_api_key="small")
            assert answer.status == 200, answer.body
            [spent] = _settled(keys)
        assert keys.reserved[0][2] >= least
        assert spent.tokens_in >= least


class _Embedding(Provider):
    """Gives embeddings away."""

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        rows = [{"object": "embedding", "index": 0, "embedding": [1.0]}]
        return web.json_response({"object": "list", "data": rows, "model": "m1", "usage": usage})


def test_turns_on_a_websocket_are_charged_as_much_as_was_heard() -> None:
    """Closing the connection in the middle of a turn is hanging up, too."""
    asked = {"type": "response.create", "model": "m1", "input": "Hi", "max_output_tokens": 16}
    for back in ("openai-responses", "anthropic"):
        with charging(Writer(back)) as (serving, keys):
            url = serving.url.replace("http:", "ws:") + "/v1/responses"
            with connect(url, additional_headers={"x-api-key": "small"}) as at:
                at.send(json.dumps(asked))
                heard = 0
                while heard < 300:
                    heard += json.loads(at.recv(timeout=PATIENCE))["type"].endswith("text.delta")
            [spent] = _settled(keys)
        assert spent.tokens_out >= heard, back


def test_names_that_stand_twice_are_refused_on_a_websocket() -> None:
    """As over HTTP, before they are merged into one."""
    text = '{"type":"response.create","model":"m1","input":"Hi","model":"m2"}'
    provider = Provider("openai-responses")
    with charging(provider) as (serving, _):
        url = serving.url.replace("http:", "ws:") + "/v1/responses"
        with connect(url, additional_headers={"x-api-key": "plain"}) as at:
            at.send(text)
            told = json.loads(at.recv(timeout=PATIENCE))
    assert (told["type"], told["status"], provider.asked) == ("error", 400, [])


def test_a_background_response_that_is_cancelled_costs_what_was_generated() -> None:
    """Its client reads what there is, and cancels the rest."""
    body = {"model": "m1", "input": "Hi", "background": True, "stream": True,
            "max_output_tokens": 16}  # fmt: skip
    with charging(Writer("openai-responses"), history="memory:") as (serving, keys):
        data = _hang_up(serving, "/v1/responses", body, 30_000)
        created = data.index(b'"id":"resp_') + 6
        id = data[created : data.index(b'"', created)].decode()
        assert not keys.settled
        ask(serving.url, f"/v1/responses/{id}/cancel", b"", x_api_key="small")
        [spent] = _settled(keys)
    assert spent.tokens_out >= len(_heard("openai-responses", data)) > 50


class _Failing(Provider):
    """Begins a stream, and fails before it says anything."""

    async def stream(self, request: web.Request, frames: Sequence[bytes]) -> web.StreamResponse:
        return await super().stream(request, [b": hello\n\n", *frames[:0]])


@pytest.mark.parametrize("front", ["openai-responses", "ollama"])
def test_a_stream_that_fails_before_it_begins_costs_nothing(front: str) -> None:
    """The client gets an error, and its reservation back; also after several attempts."""
    with charging(_Failing("openai-chat"), _Failing("anthropic")) as (serving, keys):
        path, body = path_for(front, stream=True, model="m1"), body_for(front, stream=True)
        answer = ask(serving.url, path, {**body, "model": "m1"}, x_api_key="small")
        deadline = monotonic() + PATIENCE
        while not keys.released + len(keys.settled) and monotonic() < deadline:
            threading.Event().wait(0.005)
    assert answer.status >= 400
    assert (keys.released, keys.settled) == (1, [])
