"""What users of OpenAI Chat SDKs write themselves: messages, tools, and merged streams."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.gateway.matrix.conversation import Called, Offered

Json = dict[str, Any]


def user_turn(text: str, image: bytes | None) -> Json:
    """A user message; an image is sent as a data URL."""
    if image is None:
        return {"role": "user", "content": text}
    url = f"data:image/png;base64,{base64.b64encode(image).decode()}"
    picture = {"type": "image_url", "image_url": {"url": url}}
    return {"role": "user", "content": [{"type": "text", "text": text}, picture]}


def result_turns(results: Sequence[tuple[Called, str]]) -> list[Json]:
    """Results of tool calls, one message each."""
    return [
        {"role": "tool", "tool_call_id": called.id, "content": text} for called, text in results
    ]


def chat_tools(tools: Sequence[Offered]) -> list[Json]:
    """Functions, strict as the helpers of OpenAI's SDK require."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
                "strict": True,
            },
        }
        for tool in tools
    ]


def calls_in(message: Mapping[str, Any]) -> tuple[Called, ...]:
    """The calls of a message."""
    return tuple(
        Called(each.get("id"), each["function"]["name"], json.loads(each["function"]["arguments"]))
        for each in message.get("tool_calls") or ()
    )


def merged(deltas: Iterable[Mapping[str, Any]]) -> Json:
    """The message made of a stream's deltas: texts joined, lists merged by `index`.

    SDKs without a helper for it leave this to their users.
    """
    message: Json = {"role": "assistant"}
    for delta in deltas:
        _merge(message, {key: value for key, value in delta.items() if key != "role"})
    for call in message.get("tool_calls") or ():
        call.pop("index", None)
    return message


_WHOLE = frozenset({"id", "type", "index", "name", "signature", "format", "data"})


def _merge(into: Json, delta: Mapping[str, Any]) -> None:
    for key, value in delta.items():
        if value is None:
            continue
        if isinstance(value, str) and key not in _WHOLE:
            into[key] = (into.get(key) or "") + value
        elif isinstance(value, list):
            _merge_list(into.setdefault(key, []), value)
        elif isinstance(value, Mapping):
            _merge(into.setdefault(key, {}), value)
        else:
            into[key] = value


def _merge_list(into: list[Json], items: Iterable[Mapping[str, Any]]) -> None:
    for item in items:
        same = [each for each in into if "index" in item and each.get("index") == item["index"]]
        if not same:
            same = [{}]
            into.append(same[0])
        _merge(same[0], item)


SUM_FIELDS = ("prompt_tokens", "completion_tokens")
"""The names of the token counts, for SDKs without other names."""


def thinking_in(message: Mapping[str, Any]) -> str:
    """The thinking, which servers send in one of two fields."""
    return str(message.get("reasoning_content") or message.get("reasoning") or "")
