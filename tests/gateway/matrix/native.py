"""Answers in each provider's own format, built field by field from one description."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from dragoman.model.events import Event, PartDelta, PartStart
from dragoman.model.parts import Text, Thinking
from dragoman.model.responses import Response
from dragoman.transport.answers import events_of
from dragoman.wire.dialect import dialect
from dragoman.wire.front import Front

MODELS = {
    "openai-chat": "anthropic/claude-sonnet-4.6",
    "openai-responses": "gpt-5.2",
    "anthropic": "claude-sonnet-4-6",
    "gemini": "gemini-3-flash-preview",
    "ollama": "qwen3:4b",
}
"""The requested model, by the dialect behind the gateway."""
THOUGHT = "The bridge over the Neretva is meant."
INPUT, CACHED, OUTPUT, REASONING = 31, 8, 17, 5
_SIGNATURE = "EuYBCkQYAiJAc2lnbmVkIGJ5IHRoZSBtb2RlbA=="
Json = dict[str, Any]


class Said(NamedTuple):
    """The content of a model's answer."""

    text: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    """Names and arguments."""
    thinks: bool = False


def _chat(said: Said) -> Json:
    message: Json = {"role": "assistant", "content": said.text or None, "refusal": None}
    if said.thinks:
        detail = {"type": "reasoning.text", "text": THOUGHT, "signature": _SIGNATURE}
        message["reasoning"] = THOUGHT
        message["reasoning_details"] = [{**detail, "format": "anthropic-claude-v1", "index": 0}]
    if said.calls:
        message["tool_calls"] = [
            {
                "id": f"call_{number}",
                "type": "function",
                "index": number,
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for number, (name, arguments) in enumerate(said.calls)
        ]
    finish = "tool_calls" if said.calls else "stop"
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    usage = {
        "prompt_tokens": INPUT,
        "completion_tokens": OUTPUT,
        "total_tokens": INPUT + OUTPUT,
        "prompt_tokens_details": {"cached_tokens": CACHED, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": REASONING, "audio_tokens": 0},
    }
    return {
        "id": "gen-1700000000-abc", "object": "chat.completion", "created": 1_700_000_000,
        "model": MODELS["openai-chat"], "choices": [choice], "usage": usage,
        "system_fingerprint": None,
    }  # fmt: skip


def _responses(said: Said) -> Json:
    output: list[Json] = []
    if said.thinks:
        summary = [{"type": "summary_text", "text": THOUGHT}]
        output.append(
            {"id": "rs_1", "type": "reasoning", "summary": summary,
             "encrypted_content": "gAAAAABsealed-by-openai=="}
        )  # fmt: skip
    if said.text:
        words = {"type": "output_text", "text": said.text, "annotations": [], "logprobs": []}
        output.append(
            {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant",
             "content": [words]}
        )  # fmt: skip
    output += [
        {"id": f"fc_{number}", "type": "function_call", "status": "completed",
         "call_id": f"call_{number}", "name": name, "arguments": json.dumps(arguments)}
        for number, (name, arguments) in enumerate(said.calls)
    ]  # fmt: skip
    usage = {
        "input_tokens": INPUT,
        "input_tokens_details": {"cached_tokens": CACHED},
        "output_tokens": OUTPUT,
        "output_tokens_details": {"reasoning_tokens": REASONING},
        "total_tokens": INPUT + OUTPUT,
    }
    return {
        "id": "resp_1", "object": "response", "created_at": 1_700_000_000, "status": "completed",
        "error": None, "incomplete_details": None, "instructions": None,
        "model": MODELS["openai-responses"], "output": output, "parallel_tool_calls": True,
        "previous_response_id": None, "store": False, "temperature": 1.0, "top_p": 1.0,
        "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [],
        "truncation": "disabled", "usage": usage, "metadata": {},
    }  # fmt: skip


def _anthropic(said: Said) -> Json:
    content: list[Json] = []
    if said.thinks:
        content.append({"type": "thinking", "thinking": THOUGHT, "signature": _SIGNATURE})
    if said.text:
        content.append({"type": "text", "text": said.text})
    content += [
        {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": dict(arguments)}
        for number, (name, arguments) in enumerate(said.calls)
    ]
    usage = {
        "input_tokens": INPUT - CACHED,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": CACHED,
        "output_tokens": OUTPUT,
        "output_tokens_details": {"thinking_tokens": REASONING},
        "service_tier": "standard",
    }
    return {
        "id": "msg_01", "type": "message", "role": "assistant", "model": MODELS["anthropic"],
        "content": content, "stop_reason": "tool_use" if said.calls else "end_turn",
        "stop_sequence": None, "usage": usage,
    }  # fmt: skip


def _gemini(said: Said) -> Json:
    parts: list[Json] = []
    signed = {"thoughtSignature": _SIGNATURE} if said.thinks else {}
    if said.thinks:
        parts.append({"text": THOUGHT, "thought": True})
    if said.text:
        parts.append({"text": said.text, **({} if said.calls else signed)})
    for number, (name, arguments) in enumerate(said.calls):
        called = {"functionCall": {"id": f"fn{number}", "name": name, "args": dict(arguments)}}
        parts.append({**called, **(signed if number == 0 else {})})
    content = {"role": "model", "parts": parts}
    usage = {
        "promptTokenCount": INPUT,
        "cachedContentTokenCount": CACHED,
        "candidatesTokenCount": OUTPUT - REASONING,
        "thoughtsTokenCount": REASONING,
        "totalTokenCount": INPUT + OUTPUT,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": INPUT}],
    }
    return {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage, "modelVersion": MODELS["gemini"], "responseId": "g1",
    }  # fmt: skip


def _ollama(said: Said) -> Json:
    message: Json = {"role": "assistant", "content": said.text}
    if said.thinks:
        message["thinking"] = THOUGHT
    if said.calls:
        message["tool_calls"] = [
            {"function": {"index": number, "name": name, "arguments": dict(arguments)}}
            for number, (name, arguments) in enumerate(said.calls)
        ]
    return {
        "model": MODELS["ollama"], "created_at": "2026-01-02T03:04:05.678901Z", "message": message,
        "done": True, "done_reason": "stop", "total_duration": 5_043_500_667,
        "load_duration": 5_025_959, "prompt_eval_count": INPUT, "prompt_eval_duration": 3_000_000,
        "eval_count": OUTPUT, "eval_duration": 4_709_213_000,
    }  # fmt: skip


_BODIES: dict[str, Callable[[Said], Json]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
}


def body_of(back: str, said: Said) -> bytes:
    """The answer as one body."""
    return json.dumps(_BODIES[back](said)).encode()


def frames_of(back: str, said: Said) -> list[bytes]:
    """The answer as the frames of a stream, with its texts in pieces."""
    path = "/v1beta/models/m:streamGenerateContent?alt=sse" if back == "gemini" else None
    asked: Json = {"model": MODELS[back], "messages": [], "input": "", "max_tokens": 9}
    if back == "openai-chat":
        asked["stream_options"] = {"include_usage": True}
    request = dialect(back).decode_request({} if back == "gemini" else asked, path=path)
    encoder = Front(back, request, path=path, clock=lambda: 1_700_000_000.0).stream()
    response = dialect(back).decode_response(body_of(back, said))
    frames = [encoder.feed(event) for event in _in_pieces(response)]
    return [frame for frame in (*frames, encoder.close()) if frame]


def _in_pieces(response: Response) -> Iterator[Event]:
    for event in events_of(response):
        part = event.part if isinstance(event, PartStart) else None
        if not isinstance(event, PartStart) or not isinstance(part, (Text, Thinking)):
            yield event
            continue
        yield PartStart(event.index, part.replace(text=""), event.choice)
        for start in range(0, len(part.text), 9):
            yield PartDelta(event.index, part.text[start : start + 9])
