"""Handwritten answers of each provider in its wire format, with seals and ids.

A turn has two answers: one with thinking, text and two parallel calls, and the final one. The
texts and seals of each turn are distinct from those of any other.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

Body = dict[str, Any]


def seal(place: str, turn: int, number: int = 0) -> str:
    """Sealed state that may only be sent back to that provider."""
    return base64.b64encode(f"sealed at {place} in turn {turn}, {number}".encode() * 3).decode()


class Said:
    """The contents of one turn."""

    def __init__(self, turn: int) -> None:
        self.question = f"Question {turn}: what is on this picture?"
        self.pixel = base64.b64encode(b"\x89PNG\r\n\x1a\n" + f"picture {turn}.".encode()).decode()
        self.thought = f"Thought {turn}: two tools will do."
        self.text = f"Let me look, {turn}."
        self.calls = {"weather": {"city": f"Basel {turn}"}, "clock": {"city": f"Bern {turn}"}}
        self.afterthought = f"Afterthought {turn}: that is all."
        self.answer = f"Answer {turn}."

    @property
    def asked(self) -> list[str]:
        """Texts that the first request of the turn must contain."""
        return [self.question, self.pixel]

    @property
    def called(self) -> list[str]:
        """Texts that the request after the tools must contain as well."""
        return [self.text, *(call["city"] for call in self.calls.values())]


def anthropic(place: str, turn: int, model: str, *, is_last: bool) -> Body:
    """An Anthropic message whose thinking is signed."""
    said = Said(turn)
    content: list[Body] = [
        {"type": "thinking", "thinking": said.thought, "signature": seal(place, turn)},
        {"type": "redacted_thinking", "data": seal(place, turn, 1)},
        {"type": "text", "text": said.text},
        *({"type": "tool_use", "id": f"toolu_01{place.replace(' ', '')}{turn}{name}", "name": name,
           "input": arguments} for name, arguments in said.calls.items()),
    ]  # fmt: skip
    if is_last:
        content = [
            {"type": "thinking", "thinking": said.afterthought, "signature": seal(place, turn, 2)},
            {"type": "text", "text": said.answer},
        ]
    return {
        "id": f"msg_{turn}{is_last}", "type": "message", "role": "assistant",
        "model": f"{model}-20250929", "content": content,
        "stop_reason": "end_turn" if is_last else "tool_use", "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 7},
    }  # fmt: skip


def responses(place: str, turn: int, model: str, *, is_last: bool) -> Body:
    """An OpenAI Responses answer: items with ids, and encrypted reasoning."""
    said = Said(turn)
    thought = said.afterthought if is_last else said.thought
    key = f"{turn}{'b' if is_last else 'a'}"
    text = {"type": "output_text", "text": said.answer if is_last else said.text, "annotations": []}
    output: list[Body] = [
        {"type": "reasoning", "id": f"rs_{key}", "summary": [
            {"type": "summary_text", "text": thought}],
         "encrypted_content": seal(place, turn, int(is_last))},
        {"type": "message", "id": f"msg_{key}", "role": "assistant", "status": "completed",
         "content": [text]},
    ]  # fmt: skip
    if not is_last:
        output += [
            {"type": "function_call", "id": f"fc_{key}{name}", "call_id": f"call_{key}{name}",
             "name": name, "arguments": json.dumps(arguments), "status": "completed"}
            for name, arguments in said.calls.items()
        ]  # fmt: skip
    return {
        "id": f"resp_{key}", "object": "response", "created_at": 1, "model": f"{model}-2025-08-07",
        "status": "completed", "output": output, "store": True, "parallel_tool_calls": True,
        "tools": [], "tool_choice": "auto",
        "usage": {"input_tokens": 9, "output_tokens": 7, "total_tokens": 16,
                  "input_tokens_details": {"cached_tokens": 0},
                  "output_tokens_details": {"reasoning_tokens": 2}},
    }  # fmt: skip


def gemini(place: str, turn: int, model: str, *, is_last: bool) -> Body:
    """A Gemini 3 answer: the first call of a step and the last part are signed (W83, W85)."""
    said = Said(turn)
    calls: list[Body] = [{"functionCall": {"name": n, "args": a}} for n, a in said.calls.items()]
    calls[0]["thoughtSignature"] = seal(place, turn)
    parts = [{"text": said.thought, "thought": True}, {"text": said.text}, *calls]
    if is_last:
        parts = [
            {"text": said.afterthought, "thought": True},
            {"text": said.answer, "thoughtSignature": seal(place, turn, 1)},
        ]
    return {
        "candidates": [{"index": 0, "content": {"role": "model", "parts": parts},
                        "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 5,
                          "thoughtsTokenCount": 2, "totalTokenCount": 16},
        "modelVersion": model, "responseId": f"g{turn}{is_last}",
    }  # fmt: skip


def ollama(_place: str, turn: int, model: str, *, is_last: bool) -> Body:
    """An Ollama answer: no ids, nothing sealed, and `stop` even with calls."""
    said = Said(turn)
    message: Body = {"role": "assistant", "content": said.text, "thinking": said.thought}
    if is_last:
        message |= {"content": said.answer, "thinking": said.afterthought}
    else:
        message["tool_calls"] = [
            {"function": {"name": name, "arguments": arguments}}
            for name, arguments in said.calls.items()
        ]
    return {
        "model": model, "created_at": "2026-01-01T00:00:00.5Z", "message": message,
        "done": True, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 7,
    }  # fmt: skip


def _chat(turn: int, model: str, *, is_last: bool, **thinking: Any) -> Body:
    said = Said(turn)
    message: Body = {"role": "assistant", "content": said.text, **thinking}
    if is_last:
        message["content"] = said.answer
    else:
        message["tool_calls"] = [
            {"id": f"call_{turn}{name}", "type": "function",
             "function": {"name": name, "arguments": json.dumps(arguments)}}
            for name, arguments in said.calls.items()
        ]  # fmt: skip
    choice = {"index": 0, "message": message, "finish_reason": "stop" if is_last else "tool_calls"}
    return {
        "id": f"chatcmpl-{turn}{is_last}", "object": "chat.completion", "created": 1,
        "model": model, "choices": [choice],
        "usage": {"prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16},
    }  # fmt: skip


def openrouter(place: str, turn: int, model: str, *, is_last: bool) -> Body:
    """OpenRouter's Chat with Claude behind it: `reasoning_details`, one of them signed."""
    thought = Said(turn).afterthought if is_last else Said(turn).thought
    detail = {"type": "reasoning.text", "text": thought, "format": "anthropic-claude-v1",
              "index": 0, "signature": seal(place, turn, int(is_last))}  # fmt: skip
    return _chat(turn, model, is_last=is_last, reasoning=thought,
                 reasoning_details=[detail])  # fmt: skip


def deepseek(_place: str, turn: int, model: str, *, is_last: bool) -> Body:
    """DeepSeek's Chat: thinking beside the text."""
    thought = Said(turn).afterthought if is_last else Said(turn).thought
    return _chat(turn, model, is_last=is_last, reasoning_content=thought)


def openai(_place: str, turn: int, model: str, *, is_last: bool) -> Body:
    """OpenAI's Chat, which shows no thinking."""
    return _chat(turn, model, is_last=is_last, refusal=None, annotations=[])


def groq(_place: str, turn: int, model: str, *, is_last: bool) -> Body:
    """Groq's Chat."""
    thought = Said(turn).afterthought if is_last else Said(turn).thought
    return _chat(turn, model, is_last=is_last, reasoning=thought)


def mistral(_place: str, turn: int, model: str, *, is_last: bool) -> Body:
    """Mistral's Chat: ids of nine characters."""
    body = _chat(turn, model, is_last=is_last)
    for number, call in enumerate(body["choices"][0]["message"].get("tool_calls", ())):
        call["id"] = f"mistral{turn % 10}{number}"
    return body


Spoken = Callable[..., Body]
