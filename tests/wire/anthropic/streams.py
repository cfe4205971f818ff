"""Test streams: plain bodies and the equivalent stream events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from dragoman.wire.anthropic.codec import DIALECT
from dragoman.wire.stream_encoding import HELD_BACK, NO_USAGE
from tests.wire import streams
from tests.wire.anthropic.stream_grammar import check_stream
from tests.wire.streams import MALFORMED, Failure, Streams, decoding, encoding

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


written = streams.written
FRAMES = {name: events_of(body) for name, body in BODIES.items()}
STREAMS = {name: written(frames) for name, frames in FRAMES.items()}

decoded = decoding(DIALECT)
encoded = encoding(DIALECT.stream_encoder)
said = partial(streams.said, is_by_value=True)


# --- for the tests of all dialects


def _ended(stream: bytes, *, may_be_odd: bool = False) -> str:
    state = check_stream(stream, may_break_off=may_be_odd).state
    return "complete" if state == "stopped" else state


_ERROR: dict[str, Any] = {
    "type": "error",
    "error": {"type": "overloaded_error", "message": "Overloaded"},
    "request_id": "req_1",
}

_FOLDER = "anthropic/ai____fixtures__-"
TABLE = {"anthropic": Streams(
    dialect=DIALECT,
    bodies=BODIES,
    frames=FRAMES,
    written=written,
    encoder=DIALECT.stream_encoder,
    ended=_ended,
    said=said,
    last=[b"message_stop"],
    failures=MALFORMED | {"overloaded": Failure(
        written([*FRAMES["text"][:4], _ERROR, *FRAMES["text"][4:]]),
        "Overloaded", "overloaded_error", 529,
        [json.dumps(_ERROR, separators=(",", ":")).encode()],
    )},
    in_pieces=(
        events_of(plain({"type": "text", "text": "abcdefgh"})),
        ("ResponseStart UsageUpdate PartStart PartDelta PartDelta PartStop"
         " ResponseStart UsageUpdate ChoiceFinish ResponseEnd"),
        ["abcde", "fgh"],
    ),
    words=["text", "tool_use", "thinking", "text_delta", "error", "\ud800"],
    keys=["type", "text", "index", "delta", "input", "usage", "x"],
    recorded_faults={
        # A second `message_start` in the middle of the first message, with an unfinished call.
        f"{_FOLDER}spliced-message-start.json": "failed",
        f"{_FOLDER}anthropic-programmatic-tool-calling.1.json": "several",
        f"{_FOLDER}anthropic-tool-search-bm25.1.json": "several",
        f"{_FOLDER}anthropic-tool-search-deferred-bm25.json": "several",
        f"{_FOLDER}anthropic-tool-search-deferred-regex.json": "several",
    },
    generated=["one id twice"],
    lost_when_cut=[HELD_BACK, NO_USAGE],
    decided_before=1,
)}  # fmt: skip
