"""Complete answers split into the frames of a stream, as each provider's server does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

Body = dict[str, Any]


def frames(dialect: str, body: Body) -> list[bytes]:
    """The frames of an answer."""
    return [*_WRITERS[dialect](body)]


def kind(dialect: str) -> str:
    """The content type of a stream."""
    return "application/x-ndjson" if dialect == "ollama" else "text/event-stream"


def _pieces(text: str) -> list[str]:
    """A text in up to three pieces."""
    third = max(len(text) // 3, 1)
    return [piece for piece in (text[:third], text[third : 2 * third], text[2 * third :]) if piece]


def _data(event: Body) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def _named(event: Body) -> bytes:
    return f"event: {event['type']}\n".encode() + _data(event)


# --- Anthropic


def _anthropic(body: Body) -> Iterator[bytes]:
    head = {**body, "content": [], "stop_reason": None}
    yield _named({"type": "message_start", "message": head})
    yield _named({"type": "ping"})
    for index, block in enumerate(body["content"]):
        yield _named(
            {"type": "content_block_start", "index": index, "content_block": _empty(block)}
        )
        for delta in _block_deltas(block):
            yield _named({"type": "content_block_delta", "index": index, "delta": delta})
        yield _named({"type": "content_block_stop", "index": index})
    ends = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    yield _named({"type": "message_delta", "delta": ends, "usage": {"output_tokens": 7}})
    yield _named({"type": "message_stop"})


_EMPTY: dict[str, Body] = {
    "thinking": {"thinking": "", "signature": ""},
    "text": {"text": ""},
    "tool_use": {"input": {}},
    "server_tool_use": {"input": {}},
}


def _empty(block: Body) -> Body:
    return {**block, **_EMPTY.get(block["type"], {})}


def _block_deltas(block: Body) -> Iterator[Body]:
    if block["type"] == "thinking":
        for piece in _pieces(block["thinking"]):
            yield {"type": "thinking_delta", "thinking": piece}
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif block["type"] == "text":
        for piece in _pieces(block["text"]):
            yield {"type": "text_delta", "text": piece}
    elif "input" in block:
        for piece in ("", *_pieces(json.dumps(block["input"]))):
            yield {"type": "input_json_delta", "partial_json": piece}


# --- Gemini: texts arrive in pieces; the last one's signature is on a part without text (W85)


def _gemini(body: Body) -> Iterator[bytes]:
    (candidate,) = body["candidates"]
    head: Body = {key: body[key] for key in ("modelVersion", "responseId") if key in body}
    for part in candidate["content"]["parts"]:
        for piece in _part_pieces(part):
            content = {"role": "model", "parts": [piece]}
            yield _data({"candidates": [{"index": 0, "content": content}], **head})
    ends = {**candidate, "content": {"role": "model", "parts": [{"text": ""}]}}
    yield _data({**body, "candidates": [ends]})


def _part_pieces(part: Body) -> Iterator[Body]:
    if "text" not in part:
        yield part
        return
    for piece in _pieces(part["text"]):
        yield {"text": piece} | ({"thought": True} if part.get("thought") else {})
    if "thoughtSignature" in part:
        yield {"text": "", "thoughtSignature": part["thoughtSignature"]}


# --- Ollama


def _ollama(body: Body) -> Iterator[bytes]:
    message = body["message"]
    head = {key: body[key] for key in ("model", "created_at")}
    deltas: list[Body] = [{"thinking": piece} for piece in _pieces(message.get("thinking", ""))]
    deltas += [{"content": piece} for piece in _pieces(message["content"])]
    deltas += [{"tool_calls": [call]} for call in message.get("tool_calls", ())]
    for delta in deltas:
        yield _line({**head, "message": {"role": "assistant", "content": "", **delta},
                     "done": False})  # fmt: skip
    yield _line({**body, "message": {"role": "assistant", "content": ""}})


def _line(event: Body) -> bytes:
    return json.dumps(event).encode() + b"\n"


# --- Chat


def _chat(body: Body) -> Iterator[bytes]:
    (choice,) = body["choices"]
    head = {**{key: body[key] for key in ("id", "created", "model")},
            "object": "chat.completion.chunk"}  # fmt: skip

    def chunk(delta: Body, finish: str | None = None) -> bytes:
        ours = {"index": 0, "delta": delta, "finish_reason": finish}
        return _data({**head, "choices": [ours]})

    yield chunk({"role": "assistant", "content": ""})
    for delta in _chat_deltas(choice["message"]):
        yield chunk(delta)
    yield chunk({}, choice["finish_reason"])
    if "usage" in body:
        yield _data({**head, "choices": [], "usage": body["usage"]})
    yield b"data: [DONE]\n\n"


def _chat_deltas(message: Body) -> Iterator[Body]:
    for name in ("reasoning", "reasoning_content"):
        details = message.get("reasoning_details", ())
        for piece in _pieces(message.get(name) or ""):
            told = [{**_unsigned(detail), "text": piece} for detail in details]
            yield {name: piece, **({"reasoning_details": told} if told else {})}
        for detail in details if name == "reasoning" else ():
            yield {"reasoning_details": [{k: v for k, v in detail.items() if k != "text"}]}
    for piece in _pieces(message["content"] or ""):
        yield {"content": piece}
    for index, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        yield {"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]}
        for piece in _pieces(function["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _unsigned(detail: Body) -> Body:
    return {key: value for key, value in detail.items() if key != "signature"}


# --- Responses


def _responses(body: Body) -> Iterator[bytes]:
    head = {**body, "output": [], "status": "in_progress", "usage": None}
    events: list[Body] = [{"type": "response.created", "response": head},
                          {"type": "response.in_progress", "response": head}]  # fmt: skip
    for index, item in enumerate(body["output"]):
        at = {"output_index": index}
        events.append({"type": "response.output_item.added", **at, "item": _begun(item)})
        events += _item_events(item, {**at, "item_id": item["id"]})
        events.append({"type": "response.output_item.done", **at, "item": item})
    events.append({"type": "response.completed", "response": body})
    for number, event in enumerate(events):
        yield _named({**event, "sequence_number": number})


_BEGUN: dict[str, Body] = {
    # W26: the sealed content here isn't complete yet.
    "reasoning": {"summary": [], "encrypted_content": "aGFsZg=="},
    "message": {"content": [], "status": "in_progress"},
    "function_call": {"arguments": "", "status": "in_progress"},
    "shell_call": {"action": {"commands": []}, "status": "in_progress"},
}


def _begun(item: Body) -> Body:
    return {**item, **_BEGUN[item["type"]]}


def _item_events(item: Body, at: Body) -> Iterator[Body]:
    if item["type"] == "reasoning":
        for number, part in enumerate(item["summary"]):
            yield from _part_events("reasoning_summary", part, {**at, "summary_index": number})
    elif item["type"] == "message":
        for number, part in enumerate(item["content"]):
            yield from _part_events("output", part, {**at, "content_index": number})
    elif item["type"] == "shell_call":
        for number, command in enumerate(item["action"]["commands"]):
            told = {"output_index": at["output_index"], "command_index": number}
            kind = "response.shell_call_command"
            yield {"type": f"{kind}.added", **told, "command": ""}
            for piece in _pieces(command):
                yield {"type": f"{kind}.delta", **told, "delta": piece}
            yield {"type": f"{kind}.done", **told, "command": command}
    else:
        for piece in _pieces(item["arguments"]):
            yield {"type": "response.function_call_arguments.delta", **at, "delta": piece}
        yield {"type": "response.function_call_arguments.done", **at, "name": item["name"],
               "arguments": item["arguments"]}  # fmt: skip


def _part_events(name: str, part: Body, at: Body) -> Iterator[Body]:
    whole = "content_part" if name == "output" else f"{name}_part"
    yield {"type": f"response.{whole}.added", **at, "part": {**part, "text": ""}}
    for piece in _pieces(part["text"]):
        yield {"type": f"response.{name}_text.delta", **at, "delta": piece}
    yield {"type": f"response.{name}_text.done", **at, "text": part["text"]}
    yield {"type": f"response.{whole}.done", **at, "part": part}


_WRITERS: dict[str, Callable[[Body], Iterator[bytes]]] = {
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
    "openai-chat": _chat,
    "openai-responses": _responses,
}
