"""A scripted server that speaks Chat, Anthropic and Responses, and records its requests."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from tests.gateway.running import upstream


class Model:
    """The scripted server's responses, and the requests that it received."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[dict[str, Any]] = []
        self.gate = threading.Event()
        """Answers wait for it after their first pieces."""
        self.begun = threading.Event()
        self.left = threading.Event()
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self.asked.clear()
        self.gate.set()
        self.begun.clear()
        self.left.clear()

    def reply(self) -> str:
        """The answer to the latest request."""
        return f"answer {len(self.asked)}"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer in the dialect of the path."""
        body = json.loads(await request.read())
        self.asked.append(body)
        frames = {"chat/completions": _chat, "messages": _anthropic, "responses": _responses}
        kind = next(name for name in frames if request.path.endswith(name))
        pieces, whole = frames[kind](self.reply(), len(self.asked))
        if not body.get("stream"):
            await self._held()
            return web.json_response(whole)
        reply = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await reply.prepare(request)
        for number, piece in enumerate(pieces):
            await reply.write(piece)
            if number == 2:
                await self._held()
        return reply

    async def _held(self) -> None:
        self.begun.set()
        try:
            while not self.gate.is_set():  # noqa: ASYNC110 - it is set in another thread
                await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            self.left.set()
            raise


@contextmanager
def model() -> Generator[Model]:
    """The scripted server, running."""
    made = Model()
    with upstream(made.answer) as url:
        made.url = url
        yield made
        made.gate.set()


def _sse(event: dict[str, Any]) -> bytes:
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def _chat(text: str, number: int) -> tuple[list[bytes], dict[str, Any]]:
    head: dict[str, Any] = {"id": f"c{number}", "created": 1, "model": "chat-model"}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    deltas = [{"role": "assistant", "content": ""}, *[{"content": each} for each in text]]
    chunks: list[dict[str, Any]] = [
        {**head, "object": "chat.completion.chunk",
         "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]  # fmt: skip
    last = {"index": 0, "delta": {}, "finish_reason": "stop"}
    chunks.append({**head, "object": "chat.completion.chunk", "choices": [last]})
    chunks.append({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    message = {"role": "assistant", "content": text}
    whole = {**head, "object": "chat.completion", "usage": usage,
             "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}  # fmt: skip
    return [*map(_sse, chunks), b"data: [DONE]\n\n"], whole


def _anthropic(text: str, number: int) -> tuple[list[bytes], dict[str, Any]]:
    thinking = {"type": "thinking", "thinking": "let me see", "signature": f"sig{number}"}
    usage = {"input_tokens": 3, "output_tokens": 2}
    head: dict[str, Any] = {"id": f"m{number}", "type": "message", "role": "assistant",
                            "model": "claude-model", "stop_sequence": None}  # fmt: skip
    events: list[dict[str, Any]] = [
        {"type": "message_start",
         "message": {**head, "content": [], "stop_reason": None, "usage": usage}},
        {"type": "content_block_start", "index": 0,
         "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
        {"type": "content_block_delta", "index": 0,
         "delta": {"type": "thinking_delta", "thinking": "let me see"}},
        {"type": "content_block_delta", "index": 0,
         "delta": {"type": "signature_delta", "signature": f"sig{number}"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
         "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]  # fmt: skip
    content = [thinking, {"type": "text", "text": text}]
    whole = {**head, "content": content, "stop_reason": "end_turn", "usage": usage}
    return [_sse(event) for event in events], whole


def _responses(text: str, number: int) -> tuple[list[bytes], dict[str, Any]]:
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
    item: dict[str, Any] = {"type": "message", "id": f"msg_up{number}", "role": "assistant",
            "status": "completed", "content": [part]}  # fmt: skip
    body = {"id": f"resp_up{number}", "object": "response", "created_at": 1, "model": "gpt-model",
            "status": "completed", "output": [item], "error": None, "incomplete_details": None,
            "instructions": None, "metadata": {}, "parallel_tool_calls": True, "temperature": 1.0,
            "tool_choice": "auto", "tools": [], "top_p": 1.0, "store": True,
            "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5,
                      "input_tokens_details": {"cached_tokens": 0},
                      "output_tokens_details": {"reasoning_tokens": 0}}}  # fmt: skip
    begun = {**body, "status": "in_progress", "output": [], "usage": None}
    place: dict[str, Any] = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0,
         "item": {**item, "status": "in_progress", "content": []}},
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        {"type": "response.output_text.delta", **place, "delta": text},
        {"type": "response.output_text.done", **place, "text": text},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": body},
    ]  # fmt: skip
    numbered = [{**event, "sequence_number": at} for at, event in enumerate(events)]
    return [_sse(event) for event in numbered], body
