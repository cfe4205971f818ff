"""Scripted servers of each dialect: they record requests and send fixed responses."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from dragoman.gateway.config.settings import Place
from tests.gateway.running import place, upstream

WORDS = ("Hello", " there.")
KINDS = {"openai": "openai", "anthropic": "anthropic", "gemini": "google", "ollama": "ollama"}
BASES = {"openai": "/v1"}
_SSE = {"Content-Type": "text/event-stream"}

Answer = Callable[[str, dict[str, Any]], Any]


class Asked:
    """A request that an upstream got."""

    def __init__(self, request: web.Request, body: bytes) -> None:
        self.method = request.method
        self.path = request.path
        self.query = dict(request.query)
        self.headers = {name.lower(): value for name, value in request.headers.items()}
        self.body = body

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)


class Upstream:
    """A server of one dialect that is running."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self.asked: list[Asked] = []
        self.url = ""

    def place(self, name: str | None = None, **changes: Any) -> Place:
        """The server as a provider of the gateway."""
        base = changes.pop("base_url", f"{self.url}{BASES.get(self.dialect, '')}")
        return place(name or self.dialect, KINDS[self.dialect], base, **changes)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Handles any request, by its path."""
        asked = Asked(request, await request.read())
        self.asked.append(asked)
        return await _ANSWERS[self.dialect](asked, request)


@contextmanager
def serving(dialect: str) -> Generator[Upstream]:
    """An upstream, until the block ends."""
    made = Upstream(dialect)
    with upstream(made.answer) as url:
        made.url = url
        yield made


def vector(text: str) -> list[float]:
    """The embedding of a text: exact in four bytes, so that base64 changes nothing."""
    return [float(len(text)), 0.5, -1.25]


async def _sent(request: web.Request, lines: list[bytes], kind: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": kind})
    await response.prepare(request)
    for line in lines:
        await response.write(line)
    await response.write_eof()
    return response


def _sse(*datas: Any) -> list[bytes]:
    return [b"data: " + json.dumps(data).encode() + b"\n\n" for data in datas]


# --- OpenAI


async def _openai(asked: Asked, request: web.Request) -> web.StreamResponse:
    match asked.path.removeprefix("/v1"):
        case "/embeddings":
            given = asked.json["input"]
            rows = [
                {"object": "embedding", "index": place, "embedding": vector(str(text))}
                for place, text in enumerate(given)
            ]
            usage = {"prompt_tokens": 7, "total_tokens": 7}
            return web.json_response(
                {
                    "object": "list",
                    "data": rows,
                    "model": asked.json.get("model", "m1"),
                    "usage": usage,
                }
            )
        case "/models":
            rows = [
                {"id": f"m{n}", "object": "model", "created": 1, "owned_by": "o"} for n in "123"
            ]
            return web.json_response({"object": "list", "data": rows})
        case "/responses/input_tokens":
            return web.json_response({"object": "response.input_tokens", "input_tokens": 42})
        case "/chat/completions":
            return await _chat(asked, request)
        case _:
            return await _files(asked, request)


async def _chat(asked: Asked, request: web.Request) -> web.StreamResponse:
    head = {"id": "chatcmpl-1", "created": 1, "model": asked.json.get("model", "m1")}
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    count = asked.json.get("n") or 1
    if not asked.json.get("stream"):
        message = {"role": "assistant", "content": "".join(WORDS)}
        choices = [{"index": n, "message": message, "finish_reason": "stop"} for n in range(count)]
        return web.json_response(
            {**head, "object": "chat.completion", "choices": choices, "usage": usage}
        )
    head["object"] = "chat.completion.chunk"
    deltas: list[tuple[dict[str, str], str | None]]
    deltas = [*(({"content": word}, None) for word in WORDS), ({}, "stop")]
    chunks = [
        {**head, "choices": [{"index": n, "delta": delta, "finish_reason": finish}]}
        for delta, finish in deltas
        for n in range(count)
    ]
    lines = _sse(*chunks, {**head, "choices": [], "usage": usage})
    return await _sent(request, [*lines, b"data: [DONE]\n\n"], "text/event-stream")


async def _files(  # noqa: PLR0911 - a table of paths
    asked: Asked, request: web.Request
) -> web.StreamResponse:
    path = asked.path.removeprefix("/v1")
    if path == "/files" and asked.method == "GET":
        return web.json_response({"object": "list", "data": [_file()], "has_more": False})
    if path == "/batches" and asked.method == "POST":
        return web.json_response({"id": "batch_1", "object": "batch", "endpoint": "/v1/x",
                                  "input_file_id": "file-1", "completion_window": "24h",
                                  "status": "validating", "created_at": 1})  # fmt: skip
    if path == "/files/file-1/content":
        return await _sent(request, [b"a" * 1000, b"b" * 1000], "application/octet-stream")
    if path == "/files/file-away":
        return web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"})
    if path == "/files/file-gone":
        error = {"message": "No such File object: upstream-key", "type": "invalid_request_error"}
        return web.json_response({"error": error}, status=404)
    if path == "/files/file-1" and asked.method == "DELETE":
        return web.json_response({"id": "file-1", "object": "file", "deleted": True})
    headers = {"Set-Cookie": "secret=1", "x-request-id": "req_up", "X-Api-Key": "upstream-key"}
    return web.json_response(_file(), headers=headers)


def _file() -> dict[str, Any]:
    return {"id": "file-1", "object": "file", "bytes": 3, "created_at": 1, "filename": "a.txt",
            "purpose": "batch", "status": "processed"}  # fmt: skip


# --- Anthropic


async def _anthropic(  # noqa: PLR0911 - a table of paths
    asked: Asked, request: web.Request
) -> web.StreamResponse:
    match asked.path:
        case "/v1/messages/count_tokens":
            return web.json_response({"input_tokens": 42})
        case "/v1/models":
            rows = [{"type": "model", "id": f"m{n}", "display_name": f"M {n}",
                     "created_at": "2025-01-01T00:00:00Z"} for n in "123"]  # fmt: skip
            return web.json_response(
                {"data": rows, "has_more": False, "first_id": "m1", "last_id": "m3"}
            )
        case "/v1/messages":
            return await _message(asked, request)
        case "/v1/messages/batches/b1/results":
            line = {"custom_id": "one", "result": {"type": "canceled"}}
            return await _sent(request, [json.dumps(line).encode() + b"\n"], "application/x-jsonl")
        case "/v1/messages/batches":
            row = _batch(request)
            page = {"data": [row], "has_more": False, "first_id": "b1", "last_id": "b1"}
            return web.json_response(page if asked.method == "GET" else row)
        case "/v1/messages/batches/b1":
            return web.json_response(_batch(request))
        case _:
            return web.json_response(
                {"id": "file_1", "type": "file", "filename": "a.txt", "mime_type": "text/plain",
                 "size_bytes": 3, "created_at": "2025-01-01T00:00:00Z", "downloadable": False}
            )  # fmt: skip


def _batch(request: web.Request) -> dict[str, Any]:
    counts = {"processing": 0, "succeeded": 0, "errored": 0, "canceled": 1, "expired": 0}
    return {"id": "b1", "type": "message_batch", "processing_status": "ended",
            "request_counts": counts, "created_at": "2025-01-01T00:00:00Z",
            "expires_at": "2025-01-02T00:00:00Z", "ended_at": "2025-01-01T00:00:00Z",
            "archived_at": None, "cancel_initiated_at": None,
            "results_url": f"http://{request.host}/v1/messages/batches/b1/results"}  # fmt: skip


async def _message(asked: Asked, request: web.Request) -> web.StreamResponse:
    head = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": asked.json.get("model", "m1"),
    }
    if not asked.json.get("stream"):
        content = [{"type": "text", "text": "".join(WORDS)}]
        usage = {"input_tokens": 5, "output_tokens": 2}
        return web.json_response(
            {**head, "content": content, "stop_reason": "end_turn", "usage": usage}
        )
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}
        for word in WORDS
    ]
    begun = {**head, "content": [], "usage": {"input_tokens": 5, "output_tokens": 1}}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *deltas,
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"},
         "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]  # fmt: skip
    lines = [f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events]
    return await _sent(request, lines, "text/event-stream")


# --- Gemini


async def _gemini(  # noqa: PLR0911 - a table of paths
    asked: Asked, request: web.Request
) -> web.StreamResponse:
    path, action = asked.path, asked.path.rpartition(":")[2]
    if path == "/v1beta/models":
        rows = [{"name": f"models/m{n}", "displayName": f"M {n}"} for n in "123"]
        return web.json_response({"models": rows})
    if action == "batchEmbedContents":
        texts = [r["content"]["parts"][0]["text"] for r in asked.json["requests"]]
        return web.json_response({"embeddings": [{"values": vector(text)} for text in texts]})
    if action == "countTokens":
        return web.json_response({"totalTokens": 42})
    if path in {"/upload/v1/files", "/upload/v1beta/files"}:
        return _upload(asked, request)
    if "/files" in path or "/batches" in path:
        return web.json_response({"name": path.split("/", 2)[2], "state": "ACTIVE"})
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7}
    chunks = [_candidate(word) for word in WORDS]
    if action == "streamGenerateContent":
        chunks[-1]["candidates"][0]["finishReason"] = "STOP"
        return await _sent(
            request,
            _sse(*chunks[:-1], {**chunks[-1], "usageMetadata": usage}),
            _SSE["Content-Type"],
        )
    whole = _candidate("".join(WORDS))
    whole["candidates"][0]["finishReason"] = "STOP"
    return web.json_response({**whole, "usageMetadata": usage})


def _candidate(text: str) -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": text}]}
    return {"candidates": [{"index": 0, "content": content}], "modelVersion": "g"}


def _upload(asked: Asked, request: web.Request) -> web.Response:
    if asked.headers.get("x-goog-upload-command") == "start":
        url = f"http://{request.host}{asked.path}?key=upstream-key&upload_id=u1"
        headers = {"X-Goog-Upload-URL": f"{url}&upload_protocol=resumable",
                   "X-Goog-Upload-Control-URL": url, "X-Goog-Upload-Status": "active"}  # fmt: skip
        return web.json_response({}, headers=headers)
    file = {"name": "files/f1", "mimeType": "text/plain", "sizeBytes": str(len(asked.body)),
            "state": "ACTIVE", "uri": "https://example.com/v1beta/files/f1"}  # fmt: skip
    return web.json_response({"file": file}, headers={"X-Goog-Upload-Status": "final"})


# --- Ollama


async def _ollama(asked: Asked, request: web.Request) -> web.StreamResponse:
    match asked.path:
        case "/api/embed":
            vectors = [vector(text) for text in asked.json["input"]]
            return web.json_response(
                {
                    "model": asked.json.get("model", "m1"),
                    "embeddings": vectors,
                    "prompt_eval_count": 7,
                }
            )
        case "/api/tags" | "/api/ps":
            rows = [{"name": f"m{n}:latest", "model": f"m{n}:latest", "size": 1} for n in "123"]
            return web.json_response({"models": rows if asked.path == "/api/tags" else rows[:1]})
        case "/api/show":
            return web.json_response(
                {"modelfile": "", "template": "{{ .Prompt }}", "details": {"family": "llama"},
                 "model_info": {}, "capabilities": ["completion", "tools", "thinking"],
                 "modified_at": "2025-01-01T00:00:00Z"}
            )  # fmt: skip
        case _:
            return await _ollama_chat(asked, request)


async def _ollama_chat(asked: Asked, request: web.Request) -> web.StreamResponse:
    head = {"model": asked.json.get("model", "m1"), "created_at": "2025-01-01T00:00:00Z"}
    last = {"done": True, "done_reason": "stop", "prompt_eval_count": 5, "eval_count": 2}
    if not asked.json["stream"]:
        message = {"role": "assistant", "content": "".join(WORDS)}
        return web.json_response({**head, "message": message, **last})
    rows: list[dict[str, Any]] = [
        {**head, "message": {"role": "assistant", "content": word}, "done": False} for word in WORDS
    ]
    rows.append({**head, "message": {"role": "assistant", "content": ""}, **last})
    lines = [json.dumps(row).encode() + b"\n" for row in rows]
    return await _sent(request, lines, "application/x-ndjson")


_ANSWERS = {"openai": _openai, "anthropic": _anthropic, "gemini": _gemini, "ollama": _ollama}
