"""Completes a generated event to a stream, and validates streams with the SDKs' types."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Any

from pydantic import TypeAdapter, ValidationError

from dragoman.wire.framing import NdjsonParser, SseParser
from tests.sdk_types import hosts
from tests.sdk_types.bodies import SOURCES, Body, Source
from tests.sdk_types.hosts import Wire
from tests.sdk_types.sentinels import Sentinels

_LOCAL = next(each.left_out for each in SOURCES if each.name == "google.genai")


# --- Chat


def chat(chunk: Wire, _sentinels: Sentinels) -> list[Wire]:
    """A chunk between other chunks of its response."""
    head: Wire = {key: chunk[key] for key in ("id", "model", "created", "object") if key in chunk}
    for choice in chunk.get("choices") or ():
        choice["index"] = 0
        delta = choice.get("delta") or {}
        if "role" in delta:
            delta["role"] = "assistant"
        for call in delta.get("tool_calls") or ():
            call["id"] = call.get("id") or "call_1"
            function = call.get("function")
            if isinstance(function, dict) or function is None:
                named: Wire = {"arguments": "{}", **(function or {})}
                call["function"] = {**named, "name": named.get("name") or "f"}
    chunk = {**chunk, "choices": chunk.get("choices") or []}
    begun: Wire = {
        "index": 0,
        "delta": {"role": "assistant", "content": "Hi"},
        "finish_reason": None,
    }
    ended: Wire = {"index": 0, "delta": {}, "finish_reason": "stop"}
    chunks = [{**head, "choices": [begun]}, chunk]
    if not any(choice.get("finish_reason") for choice in chunk["choices"]):
        chunks.append({**head, "choices": [ended]})
    return chunks


# --- Responses

_HOSTS: dict[str, Wire] = {
    "response.output_text": {"type": "message", "role": "assistant", "status": "completed",
                             "content": [{"type": "output_text", "text": "", "annotations": []}]},
    "response.refusal": {"type": "message", "role": "assistant", "status": "completed",
                         "content": [{"type": "refusal", "refusal": ""}]},
    "response.content_part": {"type": "message", "role": "assistant", "status": "completed",
                              "content": []},
    "response.reasoning_summary": {"type": "reasoning", "summary": []},
    "response.reasoning": {"type": "reasoning", "summary": [], "content": []},
    "response.function_call": {"type": "function_call", "call_id": "call_1", "name": "f",
                               "arguments": ""},
    "response.custom_tool_call": {"type": "custom_tool_call", "call_id": "call_1", "name": "f",
                                  "input": ""},
    "response.mcp_call": {"type": "mcp_call", "name": "f", "server_label": "m", "arguments": ""},
    "response.mcp_list_tools": {"type": "mcp_list_tools", "server_label": "m", "tools": []},
    "response.code_interpreter": {"type": "code_interpreter_call", "code": "", "outputs": None,
                                  "container_id": "c", "status": "completed"},
    "response.web_search": {"type": "web_search_call", "status": "completed",
                            "action": {"type": "search", "query": "q"}},
    "response.file_search": {"type": "file_search_call", "status": "completed", "queries": []},
    "response.shell_call_command": {"type": "shell_call", "call_id": "call_1",
                                    "action": {"commands": []}, "status": "completed"},
    "response.shell_call_output": {"type": "shell_call_output", "call_id": "call_1", "output": [],
                                   "status": "completed"},
    "response.apply_patch_call": {"type": "apply_patch_call", "call_id": "call_1",
                                  "operation": {"type": "delete_file", "path": "a"},
                                  "status": "completed"},
    "response.compaction": {"type": "compaction", "encrypted_content": "z"},
    "response.image_generation": {"type": "image_generation_call", "status": "completed",
                                  "result": None},
}  # fmt: skip
_WHOLE = frozenset({"response.completed", "response.failed", "response.incomplete"})
_STATES = frozenset({"response.created", "response.in_progress", "response.queued"})


def responses(event: Wire, _sentinels: Sentinels) -> list[Wire]:
    """An event between other events of its response."""
    kind = event["type"]
    given = event.get("response")
    response: Wire = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m",
                      "output": [], "parallel_tool_calls": True, "tool_choice": "auto",
                      "tools": []}  # fmt: skip
    if isinstance(given, dict):
        response = {**given, "output": [], "usage": None}
    begun = {"type": "response.created", "response": {**response, "status": "in_progress"}}
    if kind in _WHOLE:
        items = event["response"].get("output") or []
        event["response"]["status"] = kind.partition(".")[2]
        if kind == "response.failed" and not event["response"].get("error"):
            event["response"]["error"] = {"code": "server_error", "message": "m"}
        around = [{**each, "output_index": index}
                  for index, item in enumerate(items) for each in _around(item)]  # fmt: skip
        return _numbered([begun, *around, event])
    if kind in _STATES:
        event["response"] |= {"output": [], "status": "in_progress", "usage": None}
    item = _item(event)
    output = [] if item is None else [item]
    ended = {"type": "response.completed",
             "response": {**response, "status": "completed", "output": output}}  # fmt: skip
    events = [event if kind in _STATES else begun]
    if item is not None:
        events += _around(item, *_within(item, event))
    elif kind not in _STATES:
        events.append(event)
    return _numbered([*events, ended] if kind != "error" else events)


def _around(item: Wire, *events: Wire) -> list[Wire]:
    """The start and end events of an item, around the events in it."""
    item["id"] = item.get("id") or "item_1"
    added = {"type": "response.output_item.added", "output_index": 0, "item": _bare(item, events)}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    return [added, *events, done]


def _within(item: Wire, event: Wire) -> list[Wire]:
    """The events in an item: the generated one, inside its part."""
    kind = event["type"]
    if kind.startswith("response.output_item"):
        return []
    if not kind.startswith(("response.output_text", "response.refusal")):
        return [event]
    part = item["content"][0]
    empty = {"text": "", "refusal": "", "annotations": [], "logprobs": []}
    head: Wire = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    bare = {key: empty.get(key, value) for key, value in part.items()}
    return [{"type": "response.content_part.added", **head, "part": bare}, event,
            {"type": "response.content_part.done", **head, "part": part}]  # fmt: skip


def _bare(item: Wire, events: tuple[Wire, ...]) -> Wire:
    """An item as it starts."""
    empty: Wire = {"content": [], "summary": [], "arguments": "", "input": "", "code": ""}
    return {key: empty.get(key, value) if events else value for key, value in item.items()}


def _item(event: Wire) -> Wire | None:
    """The item that an event belongs to."""
    if event["type"].startswith("response.output_item"):
        item: Wire = event["item"]
        return item
    found = next((item for kind, item in _HOSTS.items() if event["type"].startswith(kind)), None)
    if found is None:
        return None
    if "item_id" in event:
        event["item_id"] = "item_1"
    return _grown({**deepcopy(found), "id": "item_1"}, event)


def _grown(item: Wire, event: Wire) -> Wire:
    """The completed item, including what the event added."""
    said = next((event[key] for key in ("delta", "text", "refusal", "arguments", "input", "code")
                 if isinstance(event.get(key), str)), None)  # fmt: skip
    if isinstance(event.get("part"), dict):
        key = "summary" if "summary" in event["type"] else "content"
        item[key] = [event["part"]]
    elif "summary" in event["type"] and said is not None:
        item["summary"] = [{"type": "summary_text", "text": said}]
    elif item["type"] == "reasoning" and said is not None:
        item["content"] = [{"type": "reasoning_text", "text": said}]
    elif item["type"] == "message":
        content = item["content"][0]
        content["refusal" if content["type"] == "refusal" else "text"] = said or ""
        if isinstance(event.get("annotation"), dict):
            content["annotations"] = [event["annotation"]]
        if event.get("logprobs"):
            content["logprobs"] = event["logprobs"]
    elif said is not None:
        grown = [key for key in ("arguments", "input", "code") if key in item]
        item |= dict.fromkeys(grown, said)
    return item


def _numbered(events: list[Wire]) -> list[Wire]:
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


# --- Anthropic

_BLOCKS: dict[str, Wire] = {
    "text_delta": {"type": "text", "text": ""},
    "citations_delta": {"type": "text", "text": "", "citations": []},
    "input_json_delta": {"type": "tool_use", "id": "t", "name": "f", "input": {}},
    "thinking_delta": {"type": "thinking", "thinking": "", "signature": ""},
    "signature_delta": {"type": "thinking", "thinking": "", "signature": ""},
    "compaction_delta": {"type": "compaction", "content": None},
}


def anthropic(event: Wire, _sentinels: Sentinels) -> list[Wire]:
    """An event between other events of its message."""
    kind = event["type"]
    event.pop("index", None)
    message: Wire = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
                     "content": [], "stop_reason": None, "stop_sequence": None,
                     "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
    begun = event if kind == "message_start" else {"type": "message_start", "message": message}
    if kind == "message_start":
        event["message"]["content"] = []
    ended = {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
             "usage": {"output_tokens": 1}}  # fmt: skip
    block = _BLOCKS.get((event.get("delta") or {}).get("type", ""), {"type": "text", "text": ""})
    if kind == "content_block_start":
        blocks = hosts.with_call(event["content_block"])
        pieces = [{**event, "content_block": each} for each in blocks]
    else:
        pieces = [{"type": "content_block_start", "content_block": deepcopy(block)}]
    if kind == "content_block_delta":
        pieces.append(event)
    events = [begun]
    number = -1
    for piece in pieces:
        if piece["type"] == "content_block_start":
            if number >= 0:
                events.append({"type": "content_block_stop", "index": number})
            number += 1
        events.append({**piece, "index": number})
    last = {**event, "index": number} if kind == "content_block_stop" else None
    events.append(last or {"type": "content_block_stop", "index": number})
    events += [event if kind == "message_delta" else ended, {"type": "message_stop"}]
    return events


# --- Gemini and Ollama


def gemini(chunk: Wire, sentinels: Sentinels) -> list[Wire]:
    """A chunk between other chunks of its response."""
    chunk = hosts.gemini_response(chunk, sentinels)
    for candidate in chunk.get("candidates") or ():
        candidate.pop("index", None)
    head: Wire = {key: chunk[key] for key in ("modelVersion", "responseId") if key in chunk}
    begun = {**head, "candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}}]}
    finished = {**head, "candidates": [{"content": {"role": "model", "parts": [{"text": "."}]},
                                        "finishReason": "STOP"}]}  # fmt: skip
    reasons = [each.get("finishReason") for each in chunk.get("candidates") or ()]
    is_over = any(reason and reason != "FINISH_REASON_UNSPECIFIED" for reason in reasons)
    return [begun, chunk] if is_over else [begun, chunk, finished]


def ollama(line: Wire, sentinels: Sentinels) -> list[Wire]:
    """A line between other lines of its response."""
    line = hosts.ollama_response(line, sentinels)
    head: Wire = {"model": line.get("model") or "m", "created_at": "2026-01-01T00:00:00Z"}
    begun = {**head, "message": {"role": "assistant", "content": "Hi"}, "done": False}
    ended = {**head, "message": {"role": "assistant", "content": ""}, "done": True,
             "done_reason": "stop"}  # fmt: skip
    if line.keys() <= {"model", "created_at", "message", "logprobs", "done"}:
        return [begun, {**line, "done": False}, ended]
    return [begun, {**line, "done": True}]


# --- the sources

_Host = Callable[[Wire, Sentinels], list[Wire]]


@dataclass(frozen=True)
class Stream:
    """A generated stream."""

    body: Body
    events: list[Wire]

    def __str__(self) -> str:
        return f"{self.body.source} {self.body.case}"

    @property
    def bytes(self) -> bytes:
        """The bytes on the wire."""
        if self.body.dialect == "ollama":
            return b"".join(json.dumps(event).encode() + b"\n" for event in self.events)
        lines = [
            (f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}"
            for event in self.events
        ]
        if self.body.dialect == "openai-chat":
            lines.append("data: [DONE]")
        return "".join(f"{line}\n\n" for line in lines).encode()


@dataclass(frozen=True)
class StreamSource:
    """A type of an SDK that describes the events of a dialect's streams."""

    source: Source
    host: _Host

    def streams(self, step: int = 1) -> Iterator[Stream]:
        """Every stream, or every `step`-th."""
        for body in self.source.bodies(step):
            yield Stream(body, json.loads(json.dumps(body.wire["events"])))

    def problems(self, stream: bytes) -> list[str]:
        """What the SDK's types reject in a stream."""
        adapter = _adapter(self.source)
        found: list[str] = []
        for event in events_of(stream, self.source.dialect):
            try:
                adapter.validate_python(event)
            except ValidationError as error:
                first = error.errors()[0]
                found.append(f"{event.get('type', 'a chunk')}: {first['msg']} at {first['loc']}")
        return found


@cache
def _adapter(source: Source) -> TypeAdapter[Any]:
    assert isinstance(source.root, str)
    module, _, name = source.root.partition(":")
    return TypeAdapter(getattr(import_module(module), name))


def events_of(stream: bytes, dialect: str) -> list[Wire]:
    """The events in a stream's bytes."""
    if dialect == "ollama":
        lines = NdjsonParser()
        return [json.loads(line) for line in [*lines.feed(stream), *lines.close()]]
    frames = SseParser()
    return [
        json.loads(frame.data)
        for frame in [*frames.feed(stream), *frames.close()]
        if frame.data != "[DONE]"
    ]


def _source(name: str, dialect: str, root: str, host: _Host) -> StreamSource:
    def whole(made: Wire, sentinels: Sentinels) -> Wire:
        return {"events": host(made, sentinels)}

    left_out = _LOCAL if dialect == "gemini" else frozenset[str]()
    source = Source(name, dialect, "response", root, whole, left_out)
    return StreamSource(replace(source), host)


STREAMS: tuple[StreamSource, ...] = (
    _source("openai.chat", "openai-chat", "openai.types.chat:ChatCompletionChunk", chat),
    _source("openai.responses", "openai-responses", "openai.types.responses:ResponseStreamEvent",
            responses),
    _source("openai.beta", "openai-responses", "openai.types.beta:BetaResponseStreamEvent",
            responses),
    _source("anthropic.messages", "anthropic", "anthropic.types:RawMessageStreamEvent", anthropic),
    _source("anthropic.beta", "anthropic", "anthropic.types.beta:BetaRawMessageStreamEvent",
            anthropic),
    _source("google.genai", "gemini", "google.genai.types:GenerateContentResponse", gemini),
    _source("ollama.chat", "ollama", "ollama:ChatResponse", ollama),
    _source("groq.chat", "openai-chat", "groq.types.chat:ChatCompletionChunk", chat),
    _source("mistralai.chat", "openai-chat", "mistralai.client.models:CompletionChunk", chat),
)  # fmt: skip
