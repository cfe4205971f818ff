"""One conversation with tools, as messages and in every dialect."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.requests import Request
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.wire.dialect import dialect

ROUND = (
    Message.user("What is the weather in Mostar and in Oslo?"),
    Message.assistant(
        "Let me see.",
        tool_calls=[
            ToolCall("call_1", "weather", input={"city": "Mostar"}),
            ToolCall("call_2", "weather", input={"city": "Oslo"}),
        ],
    ),
    Message.tool(
        ToolResult.success("call_1", "sunny", tool_name="weather"),
        ToolResult.success("call_2", "snow", tool_name="weather"),
    ),
    Message.assistant("Sun there, snow here."),
)

TALK = (*ROUND, Message.user("Thanks."))
DICTS = {  # the number of wire messages for each of these messages, in a dialect
    "anthropic": (1, 1, 1, 1, 1),
    "gemini": (1, 1, 1, 1, 1),
    "ollama": (1, 1, 2, 1, 1),
    "openai-chat": (1, 1, 2, 1, 1),
    "openai-responses": (1, 3, 2, 1, 1),
}


def body_of(name: str, **fields: Any) -> dict[str, Any]:
    """A request in a dialect, as parsed JSON."""
    request = Request(model="m", messages=TALK, **fields)
    body: dict[str, Any] = json.loads(dialect(name).encode_request(request).to_bytes())
    return body


def rounds(messages: Iterable[Message]) -> list[tuple[str, Any]]:
    """Texts, calls and results, with calls by number: not all dialects keep their ids."""
    numbers: dict[str, int] = {}
    said: list[tuple[str, Any]] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                numbers[part.id] = len(numbers)
                said.append((part.name, dict(part.arguments)))
            elif isinstance(part, ToolResult):
                said.append((f"result {numbers.get(part.call_id)}", part.text))
            elif isinstance(part, Text):
                said.append((message.role.value, part.text))
    return said


def without_ids(wire: Any) -> Any:
    """A dict without optional ids."""
    if isinstance(wire, Mapping):
        return {k: without_ids(v) for k, v in wire.items() if k not in ("id", "tool_call_id")}
    return [without_ids(item) for item in wire] if isinstance(wire, list) else wire
