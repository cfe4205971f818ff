"""What each dialect's clients put into conversations besides texts and calls, at random."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Body = dict[str, Any]


def spiced(body: Body, dialect: str, rng: random.Random) -> Body:
    """The body with something more here and there."""
    _SPICES[dialect](body, rng)
    return body


def _anthropic(body: Body, rng: random.Random) -> None:
    for message in body.get("messages", ()):
        if isinstance(message["content"], str):
            continue
        for block in message["content"]:
            if block["type"] == "tool_result" and rng.random() < 0.4:
                block["is_error"] = rng.random() < 0.4
            if rng.random() < 0.05:
                block["cache_control"] = rng.choice(({"type": "ephemeral"}, None))
        if message["role"] == "assistant" and rng.random() < 0.3:
            for _ in range(rng.choice((1, 1, 2))):
                thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
                message["content"].insert(0, thought)


def _gemini(body: Body, rng: random.Random) -> None:
    has_ids = rng.random() < 0.5
    for content in body.get("contents", ()):
        for part in content["parts"]:
            called = part.get("functionCall") or part.get("functionResponse")
            if called and not has_ids and rng.random() < 0.95:
                called.pop("id", None)
            if rng.random() < 0.1:
                part["thought"] = False
            if content["role"] == "model" and rng.random() < 0.2:
                part["thoughtSignature"] = "c2ln"
        if content["role"] == "model" and rng.random() < 0.2:
            content["parts"].insert(0, {"text": "Hm.", "thought": True})


def _ollama(body: Body, rng: random.Random) -> None:
    has_ids = rng.random() < 0.5
    for message in body.get("messages", ()):
        if message["role"] == "assistant" and rng.random() < 0.2:
            message["thinking"] = "Hm."
        if not has_ids and rng.random() < 0.95:
            message.pop("tool_call_id", None)
        for call in message.get("tool_calls", ()):
            if not has_ids and rng.random() < 0.95:
                call.pop("id", None)
            if rng.random() < 0.2:
                call["type"] = "function"


def _chat(body: Body, rng: random.Random) -> None:
    for message in body.get("messages", ()):
        for number, call in enumerate(message.get("tool_calls") or ()):
            if rng.random() < 0.1:
                call["index"] = number


def _responses(body: Body, rng: random.Random) -> None:
    if not isinstance(body.get("input"), list):
        return
    items: list[Any] = []
    for number, item in enumerate(body["input"]):
        is_said = item.get("role") == "assistant"
        if (is_said or item.get("type") == "function_call") and rng.random() < 0.4:
            items += [_reasoning(f"rs_{number}{n}", rng) for n in range(rng.choice((1, 1, 2)))]
        if rng.random() < 0.15:
            item |= {"id": f"{'msg' if 'role' in item else 'fc'}_{number}", "status": "completed"}
        if is_said and isinstance(item["content"], str) and rng.random() < 0.3:
            text = {"type": "output_text", "text": item["content"], "annotations": []}
            item |= {"type": "message", "content": [text]}
        items.append(item)
    body["input"] = items


def _reasoning(item_id: str, rng: random.Random) -> Body:
    told = {"type": "summary_text", "text": rng.choice(("Hm.", "Hm.", ""))}
    item: Body = {"type": "reasoning", "id": item_id}
    item["summary"] = [dict(told) for _ in range(rng.choice((0, 0, 1, 1, 2)))]
    if rng.random() < 0.6:
        item["encrypted_content"] = rng.choice(("c2VhbA==", "c2VhbA==", "", None))
    if rng.random() < 0.1:
        del item["id"]
    return item


_SPICES: dict[str, Callable[[Body, random.Random], None]] = {
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
    "openai-chat": _chat,
    "openai-responses": _responses,
}
