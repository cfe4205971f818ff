"""A made-up comparison of two bodies, with findings of every kind."""

from __future__ import annotations

from typing import Any

RULES = [
    {"id": "W44", "text": "Every tool_use block must be answered by a tool_result in the next user message.", "evidence": "S", "severity": "error"},
    {"id": "W46", "text": "Text blocks must contain non-whitespace text.", "evidence": "S", "severity": "error"},
    {"id": "W83", "text": "A temperature above 1 is refused.", "evidence": "D", "severity": "error"},
    {"id": "W91", "text": "The first message should be the user's.", "evidence": "R", "severity": "warning"},
]  # fmt: skip


def _chat(messages: int, model: str) -> dict[str, Any]:
    turns: list[dict[str, Any]] = [{"role": "system", "content": "Answer briefly."}]
    for number in range(messages):
        role = "assistant" if number % 2 else "user"
        turns.append({"role": role, "content": f"Message {number}, with some words to read."})
    if messages > 3:
        turns[4] |= {
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Trieste"}'}}],
        }  # fmt: skip
    return {
        "model": model,
        "messages": turns,
        "temperature": 1.4,
        "logit_bias": {"50256": -100},
        "stream": True,
    }


def _anthropic(messages: int) -> dict[str, Any]:
    turns: list[dict[str, Any]] = []
    for number in range(messages):
        role = "assistant" if number % 2 else "user"
        turns.append(
            {
                "role": role,
                "content": [
                    {"type": "text", "text": f"Message {number}, with some words to read."}
                ],
            }
        )
    if messages > 3:
        turns[3]["content"] = [
            {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Trieste"}}
        ]
    return {
        "model": "claude-sonnet", "system": "Answer briefly.", "max_tokens": 4096, "messages": turns, "temperature": 1,
        "stream": True,
    }  # fmt: skip


def _side(target: str, messages: int) -> dict[str, Any]:
    is_anthropic = target.startswith("anthropic")
    side: dict[str, Any] = {
        "target": target,
        "dialect": "anthropic" if is_anthropic else "openai-chat",
        "path": "/v1/messages" if is_anthropic else "/v1/chat/completions",
        "headers": {},
        "body": _anthropic(messages) if is_anthropic else _chat(messages, target.rpartition(":")[2]),
        "losses": [], "repairs": [], "violations": [],
    }  # fmt: skip
    if is_anthropic:
        side["losses"] = [
            {
                "path": "extras.logit_bias",
                "wire_path": None,
                "reason": "the dialect has no logit_bias",
            }
        ]
        side["repairs"] = [
            {"path": "sampling.temperature", "wire_path": "temperature", "rule": "W83", "action": "retyped", "reason": "1.4 is above the largest value, 1", "text": RULES[2]["text"]},
            {"path": "messages[3].parts[0]", "wire_path": "messages[4].content[0]", "rule": "W44", "action": "added", "reason": "placeholder result: the outcome of the call is unknown", "text": RULES[0]["text"]},
        ]  # fmt: skip
    else:
        side["violations"] = [
            {"rule": "W44", "severity": "error", "wire_path": "messages[4].tool_calls[0]", "message": "The call has no result.", "text": RULES[0]["text"]},
            {"rule": "W91", "severity": "warning", "wire_path": "messages[0].role", "message": "The list begins with another role.", "text": RULES[3]["text"]},
        ]  # fmt: skip
    return side


def _path(side: dict[str, Any], number: int) -> list[str]:
    return [f"messages[{number + (side['dialect'] == 'openai-chat')}]"]


def comparison(left: str, right: str, messages: int) -> dict[str, Any]:
    """Both sides, aligned."""
    sides = {"left": _side(left, messages), "right": _side(right, messages)}
    rows = [
        {"message": number, "role": "assistant" if number % 2 else "user", "differs": number == 3 and left != right,
         "left": _path(sides["left"], number), "right": _path(sides["right"], number)}
        for number in range(messages)
    ]  # fmt: skip
    return {"source": "openai-chat", **sides, "rows": rows}


def sent() -> dict[str, Any]:
    """What one model was sent."""
    side = _side("anthropic:claude-sonnet", 6)
    return {"omitted": [], **side}
