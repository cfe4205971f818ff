"""Unusual bodies: valid ones in which something has another type, is missing, or is unknown.

The valid ones are our own fixtures and the rich bodies below. At each place below the top level,
the value is replaced by each odd value, and removed, as in the requests of real clients, gateways
and scripts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import dragoman

FIXTURES = Path(__file__).parent.parent / "fixtures"
GEMINI_PATH = "/v1beta/models/m:generateContent"

Kind = Literal["request", "response"]
Steps = tuple[str | int, ...]

REMOVED = object()
"""Put at a place, it takes the field or the item away."""

ODD: tuple[Any, ...] = (
    None, True, 5, -1, 1.5, 2**70, "", "odd", "5", [], {}, [5], ["x", None], [{}], [[]],
    {"odd": 1}, {"type": "odd"}, {"part": "odd"}, {"item": 5}, REMOVED,
)  # fmt: skip

ROLES: tuple[Any, ...] = ("control", "observation", "Assistant", "model", "tool", "", 5, None, [])
"""What stands where a role is expected."""

_SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}

RICH: dict[tuple[str, Kind], list[dict[str, Any]]] = {
    ("openai-chat", "request"): [
        {"model": "m", "temperature": 0.5, "max_tokens": 5, "stop": ["a"], "n": 1, "seed": 1,
         "top_p": 0.5, "top_logprobs": 1, "logprobs": True, "stream": False, "store": True,
         "reasoning_effort": "low", "parallel_tool_calls": True, "tool_choice": "auto",
         "stream_options": {"include_usage": True}, "metadata": {"a": "b"}, "user": "u",
         "response_format": {"type": "json_schema",
                             "json_schema": {"name": "a", "schema": _SCHEMA, "strict": True}},
         "tools": [{"type": "function",
                    "function": {"name": "f", "description": "d", "parameters": _SCHEMA}},
                   {"type": "custom", "custom": {"name": "c", "format": {"type": "text"}}}],
         "messages": [
             {"role": "system", "content": "s"},
             {"role": "user", "name": "n", "content": [
                 {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}},
                 {"type": "image_url", "image_url": {"url": "https://a/b.png", "detail": "low"}},
                 {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
                 {"type": "file", "file": {"file_data": "data:application/pdf;base64,aGk=",
                                           "filename": "a.pdf"}}]},
             {"role": "assistant", "content": "y", "reasoning_content": "r", "refusal": None,
              "tool_calls": [
                  {"id": "call_1", "type": "function",
                   "function": {"name": "f", "arguments": '{"q": "z"}'}},
                  {"id": "call_2", "type": "custom", "custom": {"name": "c", "input": "i"}}]},
             {"role": "tool", "tool_call_id": "call_1", "content": "t"},
             {"role": "tool", "tool_call_id": "call_2",
              "content": [{"type": "text", "text": "u"}, {"type": "text", "text": "v"}]},
             {"role": "assistant", "content": [{"type": "text", "text": "w"},
                                               {"type": "refusal", "refusal": "no"}],
              "audio": {"id": "audio_1"}},
             {"role": "user", "content": "q"}]},
        {"model": "m", "tool_choice": {"type": "function", "function": {"name": "f"}},
         "functions": [{"name": "f", "parameters": _SCHEMA}], "function_call": {"name": "f"},
         "messages": [
             {"role": "user", "content": "q"},
             {"role": "assistant", "content": None,
              "function_call": {"name": "f", "arguments": "{}"}},
             {"role": "function", "name": "f", "content": "r"}]},
    ],
    ("openai-chat", "response"): [
        {"id": "r", "object": "chat.completion", "created": 5, "model": "m", "choices": [
            {"index": 0, "finish_reason": "tool_calls", "logprobs": None, "message": {
                "role": "assistant", "content": "y", "refusal": None, "reasoning_content": "r",
                "reasoning_details": [{"type": "reasoning.text", "text": "r", "signature": "s"}],
                "annotations": [{"type": "url_citation", "url_citation": {
                    "url": "https://a", "title": "t", "start_index": 0, "end_index": 1}}],
                "tool_calls": [{"id": "call_1", "type": "function",
                                "function": {"name": "f", "arguments": "{}"}}]}}],
         "usage": {"prompt_tokens": 5, "completion_tokens": 6, "total_tokens": 11,
                   "prompt_tokens_details": {"cached_tokens": 1},
                   "completion_tokens_details": {"reasoning_tokens": 2}}},
    ],
    ("openai-responses", "request"): [
        {"model": "m", "instructions": "s", "temperature": 0.5, "max_output_tokens": 50,
         "top_p": 0.5, "store": True, "previous_response_id": "resp_1", "stream": False,
         "parallel_tool_calls": True, "tool_choice": "auto", "include": ["x"],
         "metadata": {"a": "b"}, "reasoning": {"effort": "low", "summary": "auto"},
         "text": {"format": {"type": "json_schema", "name": "a", "schema": _SCHEMA,
                             "strict": True}, "verbosity": "low"},
         "tools": [{"type": "function", "name": "f", "description": "d", "strict": True,
                    "parameters": _SCHEMA},
                   {"type": "web_search"}, {"type": "custom", "name": "c"}],
         "input": [
             {"role": "user", "content": [
                 {"type": "input_text", "text": "x"},
                 {"type": "input_image", "image_url": "https://a/b.png", "detail": "low"},
                 {"type": "input_file", "file_id": "file_1"}]},
             {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "r"}],
              "encrypted_content": "z", "content": [{"type": "reasoning_text", "text": "q"}]},
             {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
              "content": [{"type": "output_text", "text": "y", "annotations": [
                  {"type": "url_citation", "url": "https://a", "title": "t", "start_index": 0,
                   "end_index": 1}]}, {"type": "refusal", "refusal": "no"}]},
             {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f",
              "arguments": "{}", "status": "completed"},
             {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "c",
              "input": "i"},
             {"type": "web_search_call", "id": "ws_1", "status": "completed",
              "action": {"type": "search", "query": "q"}},
             {"type": "function_call_output", "call_id": "call_1", "output": "t"},
             {"type": "custom_tool_call_output", "call_id": "call_2",
              "output": [{"type": "input_text", "text": "u"}]},
             {"type": "item_reference", "id": "msg_9"},
             {"role": "user", "content": "q"}]},
    ],
    ("openai-responses", "response"): [
        {"id": "resp_1", "object": "response", "created_at": 5, "model": "m",
         "status": "completed", "error": None, "incomplete_details": None, "output": [
             {"type": "reasoning", "id": "rs_1", "summary": []},
             {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
              "content": [{"type": "output_text", "text": "y", "annotations": []}]},
             {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f",
              "arguments": "{}", "status": "completed"}],
         "usage": {"input_tokens": 5, "output_tokens": 6, "total_tokens": 11,
                   "input_tokens_details": {"cached_tokens": 1},
                   "output_tokens_details": {"reasoning_tokens": 2}}},
    ],
    ("anthropic", "request"): [
        {"model": "m", "max_tokens": 5000, "temperature": 0.5, "top_p": 0.5, "top_k": 3,
         "stop_sequences": ["a"], "stream": False, "metadata": {"user_id": "u"},
         "service_tier": "auto", "thinking": {"type": "enabled", "budget_tokens": 2000},
         "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
         "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": _SCHEMA}},
         "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
         "tools": [{"name": "f", "description": "d", "input_schema": _SCHEMA, "strict": True},
                   {"type": "web_search_20250305", "name": "web_search", "max_uses": 1}],
         "messages": [
             {"role": "user", "content": [
                 {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
                 {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                              "data": "aGk="}},
                 {"type": "document", "title": "t", "context": "c",
                  "source": {"type": "url", "url": "https://a/b.pdf"},
                  "citations": {"enabled": True}}]},
             {"role": "assistant", "content": [
                 {"type": "thinking", "thinking": "r", "signature": "z"},
                 {"type": "redacted_thinking", "data": "d"},
                 {"type": "text", "text": "y", "citations": [
                     {"type": "char_location", "cited_text": "c", "document_index": 0,
                      "document_title": "t", "start_char_index": 0, "end_char_index": 1}]},
                 {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
                  "input": {"query": "q"}},
                 {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                 {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"q": "z"}}]},
             {"role": "user", "content": [
                 {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": False,
                  "content": [{"type": "text", "text": "t"}]},
                 {"type": "text", "text": "q"}]},
             {"role": "assistant", "content": "w"},
             {"role": "user", "content": "q"}]},
    ],
    ("anthropic", "response"): [
        {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [
            {"type": "thinking", "thinking": "r", "signature": "z"},
            {"type": "text", "text": "y", "citations": None},
            {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"q": "z"}}],
         "stop_reason": "tool_use", "stop_sequence": None,
         "usage": {"input_tokens": 5, "output_tokens": 6, "cache_read_input_tokens": 1,
                   "cache_creation_input_tokens": 0, "server_tool_use": {"web_search_requests": 1},
                   "service_tier": "standard"}},
    ],
    ("gemini", "request"): [
        {"systemInstruction": {"role": "system", "parts": [{"text": "s"}]},
         "cachedContent": "c", "safetySettings": [{"category": "x", "threshold": "y"}],
         "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
         "generationConfig": {"temperature": 0.5, "topP": 0.5, "topK": 3, "maxOutputTokens": 5,
                              "candidateCount": 1, "stopSequences": ["a"], "seed": 1,
                              "responseMimeType": "application/json", "responseSchema": _SCHEMA,
                              "responseLogprobs": True, "logprobs": 1,
                              "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 5}},
         "tools": [{"functionDeclarations": [{"name": "f", "description": "d",
                                              "parameters": _SCHEMA}]},
                   {"googleSearch": {}}],
         "contents": [
             {"role": "user", "parts": [
                 {"text": "x"}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
                 {"fileData": {"mimeType": "video/mp4", "fileUri": "https://a/b"},
                  "videoMetadata": {"fps": 1}}]},
             {"role": "model", "parts": [
                 {"text": "r", "thought": True, "thoughtSignature": "aGk="}, {"text": "y"},
                 {"executableCode": {"language": "PYTHON", "code": "1"}},
                 {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
                 {"functionCall": {"id": "i", "name": "f", "args": {"q": "z"}},
                  "thoughtSignature": "aGk="}]},
             {"role": "user", "parts": [
                 {"functionResponse": {"id": "i", "name": "f", "response": {"a": 1}}}]},
             {"role": "model", "parts": [{"text": "w"}]},
             {"role": "user", "parts": [{"text": "q"}]}]},
    ],
    ("gemini", "response"): [
        {"candidates": [{"index": 0, "finishReason": "STOP", "avgLogprobs": -0.5,
                         "content": {"role": "model", "parts": [
                             {"text": "r", "thought": True}, {"text": "y"},
                             {"functionCall": {"name": "f", "args": {}}}]},
                         "safetyRatings": [{"category": "x", "probability": "y"}],
                         "citationMetadata": {"citationSources": [{"uri": "https://a"}]},
                         "groundingMetadata": {"webSearchQueries": ["q"], "groundingChunks": [
                             {"web": {"uri": "https://a", "title": "t"}}], "groundingSupports": [
                             {"segment": {"startIndex": 0, "endIndex": 1, "text": "y"},
                              "groundingChunkIndices": [0]}]}}],
         "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 6,
                           "totalTokenCount": 11, "thoughtsTokenCount": 1,
                           "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 5}]},
         "modelVersion": "m", "responseId": "r", "createTime": "2025-01-01T00:00:00Z"},
    ],
    ("ollama", "request"): [
        {"model": "m", "stream": True, "format": _SCHEMA, "think": True, "keep_alive": "5m",
         "logprobs": True, "top_logprobs": 1,
         "options": {"temperature": 0.5, "top_p": 0.5, "top_k": 3, "num_predict": 5,
                     "stop": ["a"], "seed": 1, "num_ctx": 5},
         "tools": [{"type": "function",
                    "function": {"name": "f", "description": "d", "parameters": _SCHEMA}}],
         "messages": [
             {"role": "system", "content": "s"},
             {"role": "user", "content": "x", "images": ["aGk="]},
             {"role": "assistant", "content": "y", "thinking": "r", "tool_calls": [
                 {"id": "call_1", "function": {"index": 0, "name": "f",
                                               "arguments": {"q": "z"}}}]},
             {"role": "tool", "tool_name": "f", "tool_call_id": "call_1", "content": "t"},
             {"role": "assistant", "content": "w"},
             {"role": "user", "content": "q"}]},
    ],
    ("ollama", "response"): [
        {"model": "m", "created_at": "2025-01-01T00:00:00Z", "done": True, "done_reason": "stop",
         "message": {"role": "assistant", "content": "y", "thinking": "r", "tool_calls": [
             {"id": "call_1", "function": {"index": 0, "name": "f", "arguments": {"q": "z"}}}]},
         "total_duration": 5, "load_duration": 1, "prompt_eval_count": 5,
         "prompt_eval_duration": 1, "eval_count": 6, "eval_duration": 1},
    ],
}  # fmt: skip

UNREADABLE = {
    ("openai-chat", "request"): "messages",
    ("openai-chat", "response"): "choices",
    ("openai-responses", "request"): "input",
    ("openai-responses", "response"): "output",
    ("anthropic", "request"): "messages",
    ("anthropic", "response"): "content",
    ("gemini", "request"): "contents",
    ("gemini", "response"): "candidates",
    ("ollama", "request"): "messages",
    ("ollama", "response"): "message",
}
"""The field without which there is nothing to read: of another type, it is a clear `WireError`."""


class Odd(NamedTuple):
    """A body with something odd in it, and its place."""

    dialect: str
    kind: Kind
    path: Steps
    body: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.dialect} {self.kind} {'.'.join(map(str, self.path))}"


@cache
def valid_bodies(dialect: str, kind: Kind) -> tuple[dict[str, Any], ...]:
    """The valid bodies: the rich ones and our own fixtures."""
    found = list(RICH[dialect, kind])
    for file in sorted((FIXTURES / dialect).glob("*.json")):
        fixture = json.loads(file.read_text(encoding="utf-8"))
        if fixture["canonical"]["kind"].lower() == kind:
            found.append(fixture["wire"])
    return tuple(found)


def places(value: Any, path: Steps = ()) -> Iterator[Steps]:
    """Every place in a JSON value except its root."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def put(value: Any, path: Steps, new: Any) -> Any:
    """A copy of a JSON value with another value at a place; other branches are shared."""
    step, *rest = path
    changed: Any = dict(value) if isinstance(value, dict) else list(value)
    if rest:
        changed[step] = put(value[step], tuple(rest), new)
    elif new is REMOVED:
        del changed[step]
    else:
        changed[step] = new
    return changed


def odd_bodies(
    dialect: str, kind: Kind, bodies: tuple[dict[str, Any], ...] | None = None
) -> Iterator[Odd]:
    """Each valid body with each odd value at each place, and unknown roles."""
    for body in valid_bodies(dialect, kind) if bodies is None else bodies:
        for path in places(body):
            if path == (UNREADABLE[dialect, kind],):
                continue
            for value in ROLES if path[-1] == "role" else ():
                yield Odd(dialect, kind, path, put(body, path, value))
            for value in ODD:
                yield Odd(dialect, kind, path, put(body, path, value))


def came_back(odd: Odd) -> Any:
    """The body, decoded and encoded in its own dialect, as its recipient parses it."""
    speaker = dragoman.dialect(odd.dialect)
    if odd.kind == "request":
        request = speaker.decode_request(odd.body, path=GEMINI_PATH)
        return json.loads(speaker.encode_request(request).to_bytes())
    response = speaker.decode_response(odd.body)
    return json.loads(speaker.encode_response(response).to_bytes())


# --- streams

STREAMS: dict[str, list[dict[str, Any]]] = {
    "openai-chat": [
        {"id": "r", "object": "chat.completion.chunk", "created": 5, "model": "m",
         "service_tier": "s", "choices": [{"index": 0, "finish_reason": None, "logprobs": None,
                                           "delta": {"role": "assistant", "content": "",
                                                     "reasoning_content": "r"}}]},
        {"id": "r", "object": "chat.completion.chunk", "created": 5, "model": "m", "choices": [
            {"index": 0, "delta": {"content": "y", "refusal": None}, "finish_reason": None,
             "logprobs": {"content": [{"token": "y", "logprob": -1.0}]}}]},
        {"id": "r", "object": "chat.completion.chunk", "created": 5, "model": "m", "choices": [
            {"index": 0, "finish_reason": None, "delta": {"tool_calls": [
                {"index": 0, "id": "call_1", "type": "function",
                 "function": {"name": "f", "arguments": ""}}]}}]},
        {"id": "r", "object": "chat.completion.chunk", "created": 5, "model": "m", "choices": [
            {"index": 0, "finish_reason": None, "delta": {"tool_calls": [
                {"index": 0, "function": {"arguments": "{}"}}]}}]},
        {"id": "r", "object": "chat.completion.chunk", "created": 5, "model": "m", "choices": [
            {"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        {"id": "r", "object": "chat.completion.chunk", "created": 5, "model": "m", "choices": [],
         "usage": {"prompt_tokens": 5, "completion_tokens": 6, "total_tokens": 11,
                   "prompt_tokens_details": {"cached_tokens": 1}}},
    ],
    "openai-responses": [
        {"type": "response.created", "sequence_number": 0, "response": {
            "id": "resp_1", "object": "response", "created_at": 5, "model": "m",
            "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": {
            "type": "reasoning", "id": "rs_1", "summary": []}},
        {"type": "response.reasoning_summary_part.added", "sequence_number": 2, "output_index": 0,
         "item_id": "rs_1", "summary_index": 0, "part": {"type": "summary_text", "text": ""}},
        {"type": "response.reasoning_summary_text.delta", "sequence_number": 3, "output_index": 0,
         "item_id": "rs_1", "summary_index": 0, "delta": "r"},
        {"type": "response.output_item.done", "sequence_number": 4, "output_index": 0, "item": {
            "type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "r"}]}},
        {"type": "response.output_item.added", "sequence_number": 5, "output_index": 1, "item": {
            "type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress",
            "content": []}},
        {"type": "response.content_part.added", "sequence_number": 6, "output_index": 1,
         "item_id": "msg_1", "content_index": 0,
         "part": {"type": "output_text", "text": "", "annotations": []}},
        {"type": "response.output_text.delta", "sequence_number": 7, "output_index": 1,
         "item_id": "msg_1", "content_index": 0, "delta": "y", "logprobs": []},
        {"type": "response.output_text.annotation.added", "sequence_number": 8, "output_index": 1,
         "item_id": "msg_1", "content_index": 0, "annotation_index": 0, "annotation": {
             "type": "url_citation", "url": "https://a", "title": "t", "start_index": 0,
             "end_index": 1}},
        {"type": "response.output_text.done", "sequence_number": 9, "output_index": 1,
         "item_id": "msg_1", "content_index": 0, "text": "y", "logprobs": []},
        {"type": "response.content_part.done", "sequence_number": 10, "output_index": 1,
         "item_id": "msg_1", "content_index": 0, "part": {
             "type": "output_text", "text": "y", "annotations": [{
                 "type": "url_citation", "url": "https://a", "title": "t", "start_index": 0,
                 "end_index": 1}]}},
        {"type": "response.output_item.done", "sequence_number": 11, "output_index": 1, "item": {
            "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "y", "annotations": [{
                 "type": "url_citation", "url": "https://a", "title": "t", "start_index": 0,
                 "end_index": 1}]}]}},
        {"type": "response.output_item.added", "sequence_number": 12, "output_index": 2, "item": {
            "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f",
            "arguments": "", "status": "in_progress"}},
        {"type": "response.function_call_arguments.delta", "sequence_number": 13,
         "output_index": 2, "item_id": "fc_1", "delta": "{}"},
        {"type": "response.function_call_arguments.done", "sequence_number": 14,
         "output_index": 2, "item_id": "fc_1", "arguments": "{}"},
        {"type": "response.output_item.done", "sequence_number": 15, "output_index": 2, "item": {
            "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f",
            "arguments": "{}", "status": "completed"}},
        {"type": "response.completed", "sequence_number": 16, "response": {
            "id": "resp_1", "object": "response", "created_at": 5, "model": "m",
            "status": "completed", "output": [
                {"type": "reasoning", "id": "rs_1",
                 "summary": [{"type": "summary_text", "text": "r"}]},
                {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                 "content": [{"type": "output_text", "text": "y", "annotations": [{
                     "type": "url_citation", "url": "https://a", "title": "t", "start_index": 0,
                     "end_index": 1}]}]},
                {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f",
                 "arguments": "{}", "status": "completed"}],
            "usage": {"input_tokens": 5, "output_tokens": 6, "total_tokens": 11,
                      "input_tokens_details": {"cached_tokens": 1},
                      "output_tokens_details": {"reasoning_tokens": 2}}}},
    ],
    "anthropic": [
        {"type": "message_start", "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
            "stop_reason": None, "stop_sequence": None,
            "usage": {"input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": 1}}},
        {"type": "content_block_start", "index": 0,
         "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0,
         "delta": {"type": "thinking_delta", "thinking": "r"}},
        {"type": "content_block_delta", "index": 0,
         "delta": {"type": "signature_delta", "signature": "z"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "y"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "citations_delta",
         "citation": {"type": "char_location", "cited_text": "c", "document_index": 0,
                      "document_title": "t", "start_char_index": 0, "end_char_index": 1}}},
        {"type": "content_block_stop", "index": 1},
        {"type": "content_block_start", "index": 2,
         "content_block": {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}},
        {"type": "content_block_delta", "index": 2,
         "delta": {"type": "input_json_delta", "partial_json": '{"q": 1}'}},
        {"type": "content_block_stop", "index": 2},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None},
         "usage": {"output_tokens": 6}},
        {"type": "message_stop"},
    ],
    "gemini": [
        {"candidates": [{"index": 0, "content": {"role": "model", "parts": [
            {"text": "r", "thought": True}]}}], "modelVersion": "m", "responseId": "r",
         "usageMetadata": {"promptTokenCount": 5, "totalTokenCount": 5}},
        {"candidates": [{"index": 0, "content": {"role": "model", "parts": [
            {"text": "y", "thoughtSignature": "aGk="}]}, "safetyRatings": [
                {"category": "x", "probability": "y"}]}], "modelVersion": "m", "responseId": "r"},
        {"candidates": [{"index": 0, "content": {"role": "model", "parts": [
            {"functionCall": {"name": "f", "args": {"q": 1}, "id": "i"}}]},
            "finishReason": "STOP", "groundingMetadata": {"webSearchQueries": ["q"]}}],
         "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 6,
                           "totalTokenCount": 11, "thoughtsTokenCount": 1},
         "modelVersion": "m", "responseId": "r"},
    ],
    "ollama": [
        {"model": "m", "created_at": "2025-01-01T00:00:00Z", "done": False,
         "message": {"role": "assistant", "content": "", "thinking": "r"}},
        {"model": "m", "created_at": "2025-01-01T00:00:01Z", "done": False,
         "message": {"role": "assistant", "content": "y"}},
        {"model": "m", "created_at": "2025-01-01T00:00:02Z", "done": False,
         "message": {"role": "assistant", "content": "", "tool_calls": [
             {"id": "call_1", "function": {"index": 0, "name": "f", "arguments": {"q": "z"}}}]}},
        {"model": "m", "created_at": "2025-01-01T00:00:03Z", "done": True, "done_reason": "stop",
         "message": {"role": "assistant", "content": ""}, "total_duration": 5,
         "prompt_eval_count": 5, "eval_count": 6, "eval_duration": 1},
    ],
}  # fmt: skip


def framed(dialect: str, chunks: Any) -> bytes:
    """Chunks as the bytes of a stream."""
    texts = [json.dumps(chunk) for chunk in chunks]
    if dialect == "ollama":
        return "".join(f"{text}\n" for text in texts).encode()
    if dialect == "openai-chat":
        texts.append("[DONE]")
    return "".join(f"data: {text}\n\n" for text in texts).encode()


def odd_streams(dialect: str) -> Iterator[tuple[Steps, list[Any]]]:
    """The stream with each odd value at each place in its chunks, except whole chunks."""
    chunks = STREAMS[dialect]
    for path in places(chunks):
        for value in ODD if len(path) > 1 else ():
            yield path, put(chunks, path, value)
