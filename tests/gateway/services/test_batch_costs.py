"""Batches are charged to the key that reads their results first, and only once."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from aiohttp import web

from dragoman.gateway.keys import BatchSpent, Budget, KeyRecord, Keys
from dragoman.gateway.services import batch_costs, batch_results
from dragoman.gateway.services.batch_results import LineResults, OperationResults
from dragoman.model.usage import Usage
from dragoman.providers.prices import LISTED
from dragoman.wire.lane.plain import Summary
from tests.gateway.running import Serving, place, routed, running, upstream
from tests.gateway.services.test_keys import ScriptedKeys
from tests.gateway.services.upstreams import BASES, KINDS

GPT, CLAUDE, GEMINI = "gpt-4.1-mini", "claude-sonnet-4-5", "gemini-2.5-flash"
VERSION = {"anthropic-version": "2023-06-01"}


def lines(*results: Any) -> bytes:
    """JSON lines."""
    return b"".join(json.dumps(result).encode() + b"\n" for result in results)


def chat(tokens: int = 10) -> dict[str, Any]:
    """A result of OpenAI's chat endpoint."""
    usage = {"prompt_tokens": tokens, "completion_tokens": 5, "total_tokens": tokens + 5}
    body = {"object": "chat.completion", "model": GPT, "choices": [{"index": 0}], "usage": usage}
    return openai_result(body)


def openai_result(body: Any, status: int = 200) -> dict[str, Any]:
    """A line of OpenAI's output file."""
    response = {"status_code": status, "request_id": "r", "body": body}
    return {"id": "batch_req_1", "custom_id": "c", "response": response, "error": None}


RESPONSE = openai_result(
    {"object": "response", "id": "resp_1", "model": GPT, "status": "completed", "output": [],
     "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}}
)  # fmt: skip
EMBEDDING = openai_result(
    {"object": "list", "data": [{"embedding": [1.0]}], "model": "text-embedding-3-small",
     "usage": {"prompt_tokens": 8, "total_tokens": 8}}
)  # fmt: skip
REFUSED = openai_result({"error": {"message": "no", "code": "x"}}, 400)
EXPIRED = {"id": "batch_req_2", "custom_id": "d", "response": None, "error": {"code": "expired"}}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "model": CLAUDE,
           "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn",
           "usage": {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 4,
                     "service_tier": "batch"}}  # fmt: skip
CLAUDES = lines(
    {"custom_id": "a", "result": {"type": "succeeded", "message": MESSAGE}},
    {"custom_id": "b", "result": {"type": "errored", "error": {"type": "error"}}},
)
GENERATED = {"candidates": [{"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP"}],
             "modelVersion": GEMINI,
             "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5}}  # fmt: skip
GEMINIS = lines({"key": "a", "response": GENERATED}, {"key": "b", "error": {"code": 3}})


def operation(name: str = "batches/b1") -> dict[str, Any]:
    """An operation of Gemini that has its results."""
    output = {"inlinedResponses": {"inlinedResponses": [{"response": GENERATED}, {"error": {}}]}}
    metadata = {"state": "BATCH_STATE_SUCCEEDED", "output": output}
    return {"name": name, "done": True, "metadata": metadata, "response": output}


class BatchKeys(ScriptedKeys):
    """Records the charges for batches; each batch once, as stores do."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: dict[str, Sequence[BatchSpent]] = {}

    async def charge_batch(self, _: KeyRecord, batch: str, spent: Sequence[BatchSpent]) -> None:
        """Keep the first."""
        self.batches.setdefault(batch, spent)

    def told(self, batch: str) -> list[tuple[Any, ...]]:
        """What was charged for a batch."""
        return [(s.model, s.requests, s.tokens_in, s.tokens_out) for s in self.batches[batch]]


class Results:
    """A provider whose every answer is the same body, in pieces."""

    def __init__(
        self, body: bytes, *, piece: int = 1000, wait: float = 0.0, **headers: str
    ) -> None:
        self.body, self.piece, self.wait = body, piece, wait
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.count = 0

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Send it."""
        self.count += 1
        reply = web.StreamResponse(headers={"content-type": "application/json", **self.headers})
        await reply.prepare(request)
        for start in range(0, len(self.body), self.piece):
            await reply.write(self.body[start : start + self.piece])
            await asyncio.sleep(self.wait)
        await reply.write_eof()
        return reply


@contextmanager
def gateway_to(results: Results, kind: str) -> Generator[tuple[Serving, BatchKeys]]:
    """A gateway with keys before that provider."""
    with upstream(results) as url:
        at = place(kind, KINDS[kind], f"{url}{BASES.get(kind, '')}")
        with running(routed(at)) as serving:
            keys: Any = BatchKeys()
            serving.gateway.keys = keys
            yield serving, keys


def read(serving: Serving, path: str, key: str = "admin") -> httpx.Response:
    """Read results."""
    headers = {"authorization": f"Bearer {key}"}
    if "/messages/" in path:
        headers |= VERSION
    return httpx.get(f"{serving.url}{path}", headers=headers)


CASES = {
    "chats": ("openai", "/v1/files/file-1/content", lines(chat(), REFUSED, chat(20), EXPIRED),
              "openai/file-1", [(GPT, 2, 30, 10)]),
    "responses": ("openai", "/v1/files/file-1/content", lines(RESPONSE), "openai/file-1",
                  [(GPT, 1, 10, 5)]),
    "embeddings": ("openai", "/v1/files/file-1/content", lines(EMBEDDING, EMBEDDING),
                   "openai/file-1", [("text-embedding-3-small", 2, 16, 0)]),
    "messages": ("anthropic", "/v1/messages/batches/b1/results", CLAUDES, "anthropic/b1",
                 [(CLAUDE, 1, 14, 5)]),
    "a file of Gemini": ("gemini", "/v1beta/files/f1:download", GEMINIS, "gemini/files/f1",
                         [(GEMINI, 1, 10, 5)]),
    "an operation": ("gemini", "/v1beta/batches/b1", json.dumps(operation()).encode(),
                     "gemini/batches/b1", [(GEMINI, 1, 10, 5)]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_results_are_passed_and_charged(case: tuple[str, str, bytes, str, Any]) -> None:
    """Byte for byte; failed requests cost nothing."""
    kind, path, body, batch, charged = case
    for piece in (7, 10_000):
        with gateway_to(Results(body, piece=piece), kind) as (serving, keys):
            answer = read(serving, path)
        assert (answer.status_code, answer.content) == (200, body)
        assert list(keys.batches) == [batch]
        assert keys.told(batch) == charged
        [spent] = keys.batches[batch]
        assert (spent.route, spent.unknown) == (kind, 0)
        assert spent.nanos > 0


ODD = {
    "half a character in a text": (b'"index": 0', b'"index": 0, "message": {"content": "\\ud83d"}'),
    "half a character in an id": (b'"custom_id": "c"', b'"custom_id": "\\udfff"'),
    "deep nesting": (b'{"index": 0}', b"[" * 5_000 + b"]" * 5_000),
    "no JSON": (b'"choices": [', b'"choices": ,['),
}


@pytest.mark.parametrize("at", [0, 1], ids=["first", "later"])
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_results_that_are_hard_to_read_are_charged(odd: tuple[bytes, bytes], at: int) -> None:
    """A client chooses ids, and what a model is asked to write: none of it makes results free."""
    usual = [lines(chat()), lines(chat())]
    usual[at] = usual[at].replace(*odd)
    with gateway_to(Results(b"".join(usual)), "openai") as (serving, keys):
        read(serving, "/v1/files/file-1/content")
    told = keys.told("openai/file-1")
    assert sum(each[1] for each in told) == 2
    assert sum(each[2] + each[3] for each in told) >= 30


def test_operations_that_are_hard_to_read_are_charged() -> None:
    """By what they report, or by their size."""
    body = json.dumps(operation()).encode()
    for odd, least in ((body.replace(b"Hi", b"\\ud83d"), 15), (body[:-1], len(body) // 3)):
        with gateway_to(Results(odd), "gemini") as (serving, keys):
            assert read(serving, "/v1beta/batches/b1").content == odd
        [[spent]] = keys.batches.values()
        assert spent.tokens_in + spent.tokens_out >= least


@pytest.mark.parametrize("target", ["batches/b1?alt=proto", "files/f1?alt=media", "batches?alt="])
def test_results_come_in_no_form_that_is_not_charged(target: str) -> None:
    """Google would send them as Protocol Buffers, too."""
    with gateway_to(results := Results(json.dumps(operation()).encode()), "gemini") as (serving, _):
        assert read(serving, f"/v1beta/{target}").status_code == 400
    assert results.count == 0


def test_compressed_results_are_charged() -> None:
    """They are decompressed on the way."""
    body = lines(chat())
    results = Results(gzip.compress(body), content_encoding="gzip")
    with gateway_to(results, "openai") as (serving, keys):
        assert read(serving, "/v1/files/file-1/content").content == body
    assert keys.told("openai/file-1") == [(GPT, 1, 10, 5)]


def test_a_list_of_operations_charges_each() -> None:
    """Each batch under its own name."""
    body = json.dumps({"operations": [operation(), operation("batches/b2"), {"name": "x"}]})
    with gateway_to(Results(body.encode()), "gemini") as (serving, keys):
        read(serving, "/v1beta/batches")
    assert list(keys.batches) == ["gemini/batches/b1", "gemini/batches/b2"]


@pytest.mark.parametrize("body", [
    b"", b"\n\n", b"a" * 5000, b"\xff\x00\n" * 9, b"{}\n" + lines(chat()),
    lines({"custom_id": "c", "method": "POST", "url": "/v1/chat/completions", "body": {}}),
    b"[" * 100_000, lines({"custom_id": 1, "response": {"body": 3}}),
], ids=["empty", "blank", "text", "binary", "late", "an input file", "deep", "odd"])  # fmt: skip
def test_other_files_cost_nothing(body: bytes) -> None:
    """A file that isn't the output of a batch passes as it is."""
    with gateway_to(Results(body), "openai") as (serving, keys):
        assert read(serving, "/v1/files/file-1/content").content == body
    assert keys.batches == {}


def test_a_batch_costs_half_if_that_price_is_known() -> None:
    """Otherwise the full price."""
    usage = Usage(input=1_000_000)
    with gateway_to(Results(lines(chat(1_000_000))), "openai") as (serving, keys):
        read(serving, "/v1/files/file-1/content")
    [spent] = keys.batches["openai/file-1"]
    usage = Usage(input=1_000_000, output=5)
    half = LISTED.cost_of(usage, GPT, "openai", tier="batch")
    full = LISTED.cost_of(usage, GPT, "openai")
    assert full is not None
    assert Decimal(spent.nanos).scaleb(-9) == (full if half is None else half)


def test_results_with_an_unknown_price_are_counted() -> None:
    """As requests whose cost is unknown."""
    result = chat()
    result["response"]["body"]["model"] = "nobody-knows-it"
    with gateway_to(Results(lines(result)), "openai") as (serving, keys):
        read(serving, "/v1/files/file-1/content")
    [spent] = keys.batches["openai/file-1"]
    assert (spent.requests, spent.unknown, spent.nanos, spent.tokens_in) == (1, 1, 0, 10)


def test_a_client_that_leaves_early_pays_all_the_same() -> None:
    """The gateway reads the rest itself."""
    body = lines(*[chat()] * 400)
    results = Results(body, piece=2000, wait=0.01)
    with gateway_to(results, "openai") as (serving, keys):
        at = urlsplit(serving.url)
        with socket.create_connection((at.hostname, at.port)) as client:
            client.sendall(b"GET /v1/files/file-1/content HTTP/1.1\r\nHost: h\r\n"
                           b"Authorization: Bearer admin\r\n\r\n")  # fmt: skip
            client.recv(1000)
        deadline = time.monotonic() + 20
        while not keys.batches and time.monotonic() < deadline:
            time.sleep(0.02)
    assert keys.told("openai/file-1") == [(GPT, 400, 4000, 2000)]
    assert results.count == 2


def test_two_gateways_charge_a_batch_once(tmp_path: Path) -> None:
    """Their store remembers it."""
    url = f"sqlite:///{tmp_path}/keys.db"

    async def created() -> str:
        async with await Keys.open(url) as keys:
            budget = Budget("cost", Decimal(1))
            return (await keys.create(models=["hosted:*", "*"], budgets=[budget]))[1]

    async def used() -> list[tuple[str, int, int]]:
        async with await Keys.open(url) as keys:
            return [(row.model, row.requests, row.tokens_in) for row in await keys.usage()
                    if row.model == GPT]  # fmt: skip

    secret, results = asyncio.run(created()), Results(lines(chat(1000), chat(1000)))
    with gateway_to(results, "openai") as (one, _), gateway_to(results, "openai") as (other, _):
        for serving in (one, other):
            serving.gateway.keys = asyncio.run(Keys.open(url))
        path = "/v1/files/file-1/content"
        # Both name the provider alike, so it is the same batch.
        found = [read(serving, path, secret).status_code for serving in (one, one, other)]
    assert found == [200, 200, 200]
    assert asyncio.run(used()) == [(GPT, 2, 2000)]


# --- reading


def _take(found: list[Summary], _: str, summary: Summary, _size: int) -> None:
    found.append(summary)


@pytest.mark.parametrize("size", [1, 100, 10_000])
@pytest.mark.parametrize("is_long", ["010", "1001"])
def test_lines_split_anywhere_are_read(
    monkeypatch: pytest.MonkeyPatch, size: int, is_long: str
) -> None:
    """Memory is bounded: a line that is too long is counted, and its usage is unknown."""
    long = chat()
    long["response"]["body"]["choices"] = ["a" * 5000]
    monkeypatch.setattr(batch_results, "MAX_LINE", 2000)
    body = lines(*(long if each == "1" else chat() for each in is_long)).rstrip()
    found: list[Summary] = []
    results = LineResults("openai-chat", "f", partial(_take, found))
    for start in range(0, len(body), size):
        results.feed(body[start : start + size])
        assert sum(map(len, results._rest)) <= 2000
    results.close()
    assert [each.model for each in found] == [None if each == "1" else GPT for each in is_long]


def test_a_long_first_line_of_another_file_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the file is kept."""
    monkeypatch.setattr(batch_results, "MAX_LINE", 2000)
    found: list[Summary] = []
    results = LineResults("openai-chat", "f", partial(_take, found))
    results.feed(b"a" * 3000 + b"\n" + lines(chat()))
    results.close()
    assert (results.may_have_results, results._rest, found) == (False, [], [])


def test_operations_that_are_too_long_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of them is kept, but their size, by which they count."""
    monkeypatch.setattr(batch_results, "MAX_OPERATION", 100)
    found: list[Any] = []
    results, body = OperationResults("b1", lambda *each: found.append(each)), operation()
    results.feed(data := json.dumps(body).encode())
    assert results._pieces == []
    results.close()
    assert found == [(f"b1#{len(data)}", Summary(None, None), len(data))]


def test_results_without_usage_are_charged_by_their_size() -> None:
    """A provider that reports nothing, or zeros, doesn't make a batch free."""
    for usage in (None, {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}):
        result = chat()
        result["response"]["body"]["choices"] = [{"index": 0, "message": {"content": "a" * 9000}}]
        result["response"]["body"]["usage"] = usage
        if usage is None:
            del result["response"]["body"]["usage"]
        with gateway_to(Results(lines(result)), "openai") as (serving, keys):
            read(serving, "/v1/files/file-1/content")
        [(_, count, _, tokens)] = keys.told("openai/file-1")
        assert (count, tokens >= 3000) == (1, True)


def test_few_results_are_read_in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that leave can't make the gateway read any number of them."""
    monkeypatch.setattr(batch_costs, "_MAX_TASKS", 0)
    results = Results(lines(*[chat()] * 400), piece=2000, wait=0.01)
    with gateway_to(results, "openai") as (serving, keys):
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(f"{serving.url}/v1/files/file-1/content", timeout=0.005,
                      headers={"authorization": "Bearer admin"})  # fmt: skip
        time.sleep(0.3)
        assert results.count <= 1
        assert keys.batches == {}
