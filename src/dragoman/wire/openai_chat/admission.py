"""Fields that a host does not take: left out, and reported (W17, W109, W111).

OpenAI's dialect has many speakers. Some ignore what they don't know, others refuse the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.wire.openai_chat.exchange import Outgoing
from dragoman.wire.openai_chat.spelling import is_list

_STRANGE = "this host takes no such field"
# Where a field of the wire stands in the request; all others are in its extras.
_PLACES = {
    "store": "state.store",
    "parallel_tool_calls": "tool_choice.parallel",
    "response_format": "output",
    "reasoning_effort": "thinking.effort",
    "reasoning": "thinking",
    "thinking": "thinking",
    "chat_template_kwargs": "thinking",
    "web_search_options": "tools",
    "functions": "tools",
}


def admit_request(body: dict[str, Any], out: Outgoing) -> dict[str, Any]:
    """The body without fields that the target refuses; those that are null are not missed."""
    target = out.target
    for key, value in list(body.items()):
        if target.admits_field(key, target.request_fields):
            continue
        del body[key]
        if value is not None:
            out.lose(_PLACES.get(key, "extras"), _STRANGE)
    tools = body.get("tools")
    if target.refused_fields and is_list(tools):
        body["tools"] = [
            _without_refused(tool, out, f"tools[{index}].extras")
            for index, tool in enumerate(tools)
        ]
    return body


def admit_message(wire: dict[str, Any], out: Outgoing, path: str) -> dict[str, Any]:
    """A message without fields that the target refuses, in it and in its parts and calls."""
    target = out.target
    kept = wire
    if not all(target.admits_field(key, target.message_fields) for key in wire):
        kept = {}
        for key, value in wire.items():
            if target.admits_field(key, target.message_fields):
                kept[key] = value
            elif value is not None:
                out.lose(f"{path}.name" if key == "name" else f"{path}.extras", _STRANGE)
    if target.refused_fields:
        for key in ("content", "tool_calls"):
            items = kept.get(key)
            if is_list(items):
                kept[key] = [_without_refused(item, out, f"{path}.parts") for item in items]
    return kept


def _without_refused(item: Any, out: Outgoing, path: str) -> Any:
    refused = out.target.refused_fields
    if not isinstance(item, Mapping) or item.keys().isdisjoint(refused):
        return item
    for key in refused:
        if item.get(key) is not None:
            out.lose(path, _STRANGE)
    return {key: value for key, value in item.items() if key not in refused}
