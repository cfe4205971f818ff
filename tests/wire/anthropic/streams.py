"""Test streams: plain bodies and the equivalent stream events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from dragoman.model.events import Event
from dragoman.model.responses import Response
from dragoman.wire.anthropic.codec import DIALECT
from dragoman.wire.streams import StreamDecoder, StreamEncoder

USAGE = {"input_tokens": 9, "output_tokens": 30, "cache_read_input_tokens": 4,
         "service_tier": "standard"}  # fmt: skip


def plain(*content: Any, **fields: Any) -> dict[str, Any]:
    """A plain body."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": list(content),
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": USAGE,
        **fields,
    }


SOURCE = {"type": "web_search_result_location", "url": "https://example.com/a", "title": "A",
          "cited_text": "so it is", "encrypted_index": "c2VhbGVk"}  # fmt: skip
STRANGE_SOURCE = {"type": "char_location", "cited_text": "no document"}

BODIES: dict[str, dict[str, Any]] = {
    "text": plain({"type": "text", "text": "Grüezi, 世界 \U0001f30d\nand\r\n\u2028so on"}),
    "nothing": plain(),
    "empty text": plain({"type": "text", "text": ""}),
    "thinking": plain(
        {"type": "thinking", "thinking": "Let me see.", "signature": "c2lnbmVk"},
        {"type": "redacted_thinking", "data": "c2VhbGVk"},
        {"type": "thinking", "thinking": "", "signature": "b21pdHRlZA=="},
        {"type": "text", "text": "Seven."},
    ),
    "parallel calls": plain(
        {"type": "text", "text": "Both:"},
        {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Basel"}},
        {"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}},
        {"type": "tool_use", "id": "toolu_3", "name": "x-y.z", "input": {"a": [1, {"b": None}]},
         "caller": {"type": "direct"}},
        stop_reason="tool_use",
    ),
    "one id twice": plain(
        {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Basel"}},
        {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Bern"}},
        stop_reason="tool_use",
    ),
    "citations": plain(
        {"type": "text", "text": "It is so."},
        {"type": "text", "text": "Quite.", "citations": [SOURCE, SOURCE]},
        {"type": "text", "text": "Hm.", "citations": [SOURCE, STRANGE_SOURCE]},
    ),
    "server tools": plain(
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
         "input": {"query": "weather"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
         "content": [{"type": "web_search_result", "title": "A", "url": "https://example.com",
                      "encrypted_content": "c2VhbGVk", "page_age": None}]},
        {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "echo", "server_name": "s",
         "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False,
         "content": [{"type": "text", "text": "hello"}]},
        {"type": "text", "text": "Sunny."},
        container={"id": "container_1", "expires_at": "2026-01-01T00:00:00Z"},
    ),
    "unknown block": plain(
        {"type": "compaction", "content": "All that was said before."},
        {"type": "text", "text": "On we go.", "odd": None},
        context_management={"applied_edits": []},
    ),
    "refusal": plain(
        {"type": "text", "text": "I "},
        stop_reason="refusal",
        stop_details={"type": "refusal", "category": "cyber", "explanation": "I'd rather not."},
    ),
    "stop sequence": plain(
        {"type": "text", "text": "1, 2, "}, stop_reason="stop_sequence", stop_sequence="3"
    ),
}  # fmt: skip


def _pieces(text: str) -> Iterator[str]:
    for at in range(0, len(text), 5):
        yield text[at : at + 5]


def _deltas(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The start of a block and its deltas, split as the provider splits them."""
    kind = block["type"]
    if kind == "text":
        start = {**block, "text": ""}
        found = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
        if "citations" in block:
            start["citations"] = []
            found[0:0] = [
                {"type": "citations_delta", "citation": citation} for citation in block["citations"]
            ]
        return start, found
    if kind == "thinking":
        found = [{"type": "thinking_delta", "thinking": p} for p in _pieces(block["thinking"])]
        found.append({"type": "signature_delta", "signature": block["signature"]})
        return {**block, "thinking": "", "signature": ""}, found
    if "input" in block:
        written = json.dumps(block["input"]) if block["input"] else ""
        found = [{"type": "input_json_delta", "partial_json": p} for p in ("", *_pieces(written))]
        return {**block, "input": {}}, found
    if kind == "compaction":
        return {**block, "content": None}, [{"type": "compaction_delta", **_without_type(block)}]
    return block, []


def _without_type(block: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key != "type"}


def events_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The stream events that are equivalent to a plain body."""
    message: dict[str, Any] = {**body, "content": [], "stop_reason": None, "stop_sequence": None,
               "usage": {**body["usage"], "output_tokens": 1}}  # fmt: skip
    beside: dict[str, Any] = {k: message.pop(k) for k in ("context_management",) if k in message}
    late: dict[str, Any] = {
        k: message.pop(k) for k in ("container", "stop_details") if k in message
    }
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    for index, block in enumerate(body["content"]):
        start, deltas = _deltas(block)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events.append({"type": "ping"})
        events += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": body["stop_reason"], "stop_sequence": body["stop_sequence"], **late}
    usage = {"output_tokens": body["usage"]["output_tokens"]}
    events.append({"type": "message_delta", "delta": delta, "usage": usage, **beside})
    events.append({"type": "message_stop"})
    return events


def written(events: Iterable[dict[str, Any]]) -> bytes:
    """The events as server-sent event bytes."""
    return b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()
        for event in events
    )


STREAMS = {name: written(events_of(body)) for name, body in BODIES.items()}


def decoded(stream: bytes, cuts: Iterable[int] = ()) -> tuple[StreamDecoder, list[Event]]:
    """Decodes a stream split at these positions; returns the decoder and the events."""
    decoder = DIALECT.stream_decoder()
    events: list[Event] = []
    start = 0
    for cut in (*sorted(cuts), len(stream)):
        events += decoder.feed(stream[start:cut])
        start = cut
    return decoder, events + decoder.close()


def encoded(events: Iterable[Event]) -> tuple[StreamEncoder, bytes]:
    """Encodes the events; returns the encoder and the bytes."""
    encoder = DIALECT.stream_encoder()
    stream = b"".join([encoder.feed(event) for event in events])
    return encoder, stream + encoder.close()


def said(response: Response) -> dict[str, Any]:
    """The response as data, without generated ids, and with arguments compared by value."""
    document: dict[str, Any] = json.loads(response.to_json())["value"]
    wire_ids: dict[str, str] = {}
    for choice in document.get("choices", ()):
        del choice["message"]["id"]
        for part in choice["message"].get("parts", ()):
            if part["type"] != "tool_call":
                continue
            if "wire_id" in part:
                part["id"] = wire_ids.setdefault(part["id"], f"id {len(wire_ids)}")
            raw = part.pop("raw", None)
            if raw is not None:
                part["input"] = _value(raw)
    return document


def _value(raw: str) -> Any:
    try:
        return json.loads(raw or "{}")
    except ValueError:
        return raw
