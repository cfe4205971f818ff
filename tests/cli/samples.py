"""Example documents for the CLI tests."""

from __future__ import annotations

import json
from typing import Any

SECRET = "xyzzy-the-secret"


def chat(text: str = "Where is the Old Bridge?", **fields: Any) -> dict[str, Any]:
    """A Chat Completions request."""
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]
    return {"model": "gpt-5", "messages": messages, **fields}


def chat_answer(text: str = "In Mostar.") -> dict[str, Any]:
    """A Chat Completions response."""
    message = {"role": "assistant", "content": text, "refusal": None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-5",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
    }


def lossy(text: str = "Hello") -> dict[str, Any]:
    """A request with content that Anthropic doesn't support."""
    return chat(text, seed=7, logprobs=True, top_logprobs=2)


ANTHROPIC: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 100,
    "system": "Be brief.",
    "messages": [{"role": "user", "content": "Where is the Old Bridge?"}],
}
GEMINI: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
RESPONSES: dict[str, Any] = {"model": "gpt-5", "input": "Hi"}
OLLAMA: dict[str, Any] = {
    "model": "llama3",
    "messages": [{"role": "user", "content": "Hi"}],
    "options": {"num_ctx": 100},
}

ANSWERS: dict[str, dict[str, Any]] = {
    "openai-chat": chat_answer(),
    "anthropic": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "In Mostar."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 3},
    },
    "gemini": {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": "In Mostar."}]},
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3},
    },
    "openai-responses": {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "gpt-5",
        "output": [
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "In Mostar.", "annotations": []}],
            }
        ],
    },
    "ollama": {
        "model": "llama3",
        "created_at": "2025-01-01T00:00:00Z",
        "message": {"role": "assistant", "content": "In Mostar."},
        "done": True,
        "done_reason": "stop",
    },
}

REQUESTS: dict[str, dict[str, Any]] = {
    "openai-chat": chat(),
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "openai-responses": RESPONSES,
    "ollama": OLLAMA,
}

HISTORIES: dict[str, list[dict[str, Any]]] = {
    "openai-chat": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "Bye"},
    ],
    "anthropic": [
        {"role": "user", "content": [{"type": "document", "source": {"type": "url", "url": "h:x"}}]}
    ],
    "gemini": [{"role": "user", "parts": [{"text": "Hi"}]}],
    "openai-responses": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
    ],
    "ollama": [{"role": "user", "content": "Hi", "images": ["aGk="]}],
}


def jsonl(*documents: Any) -> bytes:
    """Documents as JSON Lines."""
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


def many(number: int) -> bytes:
    """The given number of requests as JSON Lines, each with a different text."""
    return jsonl(*(chat(f"Question {index}") for index in range(number)))
