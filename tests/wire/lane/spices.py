"""Random extra content of each dialect's clients, besides texts and calls."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

from tests.wire.lane.media import attached

Body = dict[str, Any]


def spiced(body: Body, dialect: str, rng: random.Random) -> Body:
    """The body with random additions."""
    _SPICES[dialect](body, rng)
    return body


def with_odd_messages(body: Body, field: str, rng: random.Random) -> Body:
    """The body with one or two unusual messages, mostly near the beginning."""
    messages = body.get(field)
    if not isinstance(messages, list) or not messages:
        return body
    for _ in range(rng.choice((1, 1, 2))):
        number = min(rng.randrange(len(messages)), rng.randrange(len(messages)))
        chosen = messages[number]
        if rng.random() < 0.3:
            messages.insert(number, {"role": rng.choice(("system", "user")), "content": " "})
        elif rng.random() < 0.3 and len(messages) > 1:
            del messages[number]
        elif isinstance(chosen.get("content"), list) and rng.random() < 0.7:
            chosen["content"].append({"type": "odd", "text": "?"})
        elif "parts" in chosen:
            chosen["parts"].append({"executableCode": {"language": "PYTHON", "code": "1"}})
        else:
            chosen["odd"] = rng.choice((1, None, "x"))
    return body


def _anthropic(body: Body, rng: random.Random) -> None:
    if rng.random() < 0.1:
        body["messages"] = [each for one in body.get("messages", ()) for each in _split(one)]
    if rng.random() < 0.2:
        hint = {"type": "ephemeral", **rng.choice(({}, {}, {"ttl": "1h"}))}
        body["system"] = [{"type": "text", "text": "Brief.", "cache_control": hint}] * 2
    for message in body.get("messages", ()):
        if isinstance(message["content"], str):
            continue
        if message["role"] == "user" and rng.random() < 0.1:
            message["content"].append(attached("anthropic", rng))
        for block in message["content"]:
            _spice_block(block, rng)
        if message["role"] == "assistant" and rng.random() < 0.3:
            for _ in range(rng.choice((1, 1, 2))):
                thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
                message["content"].insert(0, thought)


def _split(message: Body) -> list[Body]:
    """A user message, split into one message for each block."""
    if message["role"] != "user" or isinstance(message["content"], str):
        return [message]
    return [{**message, "content": [block]} for block in message["content"]]


def _spice_block(block: Body, rng: random.Random) -> None:
    if block["type"] == "tool_result" and rng.random() < 0.4:
        block["is_error"] = rng.random() < 0.4
    if block["type"] == "tool_result" and rng.random() < 0.15:
        block["content"] = _contents("anthropic", rng)
    if block["type"] == "text" and rng.random() < 0.05:
        block["citations"] = rng.choice((None, None, []))
    if rng.random() < 0.08:
        block["cache_control"] = rng.choice(({"type": "ephemeral"}, None))


def _contents(dialect: str, rng: random.Random) -> list[Any]:
    """Possible contents of a result."""
    text = {"type": "text" if dialect == "anthropic" else "input_text", "text": "R"}
    made = [text, dict(text), attached(dialect, rng)]
    return rng.sample(made, rng.randint(1, 3))


_RESPONSES: tuple[Body, ...] = (
    {"error": "E"}, {"error": "E"}, {"error": ""}, {"error": {}}, {"x": 1}, {"result": "R"},
)  # fmt: skip


def _gemini(body: Body, rng: random.Random) -> None:
    has_ids = rng.random() < 0.5
    for content in body.get("contents", ()):
        for part in content["parts"]:
            called = part.get("functionCall") or part.get("functionResponse")
            if called and not has_ids and rng.random() < 0.95:
                called.pop("id", None)
            if "functionResponse" in part and rng.random() < 0.3:
                part["functionResponse"]["response"] = rng.choice(_RESPONSES)
            if rng.random() < 0.1:
                part["thought"] = False
            if content["role"] == "model" and rng.random() < 0.2:
                part["thoughtSignature"] = "c2ln"
        if content["role"] == "user" and rng.random() < 0.1:
            content["parts"].append(attached("gemini", rng))
        if content["role"] == "model" and rng.random() < 0.2:
            for _ in range(rng.choice((1, 1, 2))):
                signed = rng.choice(({}, {"thoughtSignature": "c2ln"}))
                content["parts"].insert(0, {"text": "Hm.", "thought": True, **signed})
    is_snake = rng.random() < 0.15
    body["contents"] = [
        _snake(content) if is_snake and rng.random() < 0.95 else content
        for content in body.get("contents", ())
    ]


def _snake(value: Any) -> Any:
    """The value with field names in snake case, as Python clients may send them."""
    if isinstance(value, list):
        return [_snake(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = ("args", "response")
    return {
        re.sub(r"[A-Z]", lambda found: "_" + found[0].lower(), key): (
            each if key in kept else _snake(each)
        )
        for key, each in value.items()
    }


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


_DETAILS: tuple[Body, ...] = (
    {"type": "reasoning.text", "text": "Hm.", "format": "unknown", "index": 0},
    {"type": "reasoning.text", "text": "Hm.", "signature": "c2ln", "format": "anthropic-claude-v1"},
    {"type": "reasoning.encrypted", "data": "c2VhbA==", "id": "call_1", "index": 0},
    {"type": "reasoning.encrypted", "data": "c2VhbA==", "format": None, "id": None},
    {"type": "reasoning.text", "text": ""},
    {"type": "reasoning.summary", "summary": "Hm."},
    {"type": "reasoning.text", "index": 0},
)


def _chat(body: Body, rng: random.Random) -> None:
    for message in body.get("messages", ()):
        if rng.random() < 0.04:
            message["cache_control"] = rng.choice(({"type": "ephemeral"}, {"ttl": 1}, None))
        if message["role"] != "assistant" and rng.random() < 0.04:
            message["name"] = rng.choice(("bob", "f", "", None))
        for number, call in enumerate(message.get("tool_calls") or ()):
            if rng.random() < 0.1:
                call["index"] = number
            if rng.random() < 0.1:
                call["cache_control"] = rng.choice(({"type": "ephemeral"}, {"ttl": 1}))
        if message["role"] == "assistant" and rng.random() < 0.15:
            details = [dict(rng.choice(_DETAILS)) for _ in range(rng.choice((1, 1, 2)))]
            message["reasoning_details"] = details
            if rng.random() < 0.3:
                texts = [detail.get("text") or "" for detail in details]
                message["reasoning"] = rng.choice(("".join(texts), "".join(texts), "Hm", ""))


def _responses(body: Body, rng: random.Random) -> None:
    if not isinstance(body.get("input"), list):
        return
    items: list[Any] = []
    for number, item in enumerate(body["input"]):
        is_said = item.get("role") == "assistant"
        if (is_said or item.get("type") == "function_call") and rng.random() < 0.4:
            items += [_reasoning(f"rs_{number}{n}", rng) for n in range(rng.choice((1, 1, 2)))]
        if "output" in item and rng.random() < 0.15:
            item["output"] = _contents("openai-responses", rng)
        if item.get("role") == "user" and isinstance(item["content"], list) and rng.random() < 0.2:
            item["content"].append(attached("openai-responses", rng))
        if rng.random() < 0.15:
            item_id = {"id": f"{'msg' if 'role' in item else 'fc'}_{number}"}
            done = {"status": "completed"}
            item.update(rng.choice((item_id | done, item_id | done, item_id, done)))
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
