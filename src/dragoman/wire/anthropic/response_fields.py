"""Fields that the newest API always sends and its specification requires; other servers don't."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DIRECT = {"caller": {"type": "direct"}}
_OF_BLOCKS: dict[str, dict[str, Any]] = {
    "text": {"citations": None},
    "thinking": {"signature": ""},
    "tool_use": _DIRECT,
    "server_tool_use": _DIRECT,
    "web_search_tool_result": _DIRECT,
    "web_fetch_tool_result": _DIRECT,
}
_OF_DELTAS: dict[str, Any] = {"stop_details": None, "container": None}
_OF_MESSAGES: dict[str, Any] = {"stop_reason": None, "stop_sequence": None, **_OF_DELTAS}
_COUNTS: dict[str, Any] = {
    "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens_details": None,
    "server_tool_use": None,
}  # fmt: skip
_OF_USAGE: dict[str, Any] = {
    **_COUNTS, "cache_creation": None, "inference_geo": None, "service_tier": None,
}  # fmt: skip
_TOOL_COUNTS = {"web_fetch_requests": 0, "web_search_requests": 0}


def completed_block(block: Any) -> Any:
    """A content block with all of its fields."""
    kind = block.get("type") if isinstance(block, Mapping) else None
    return _with(block, _OF_BLOCKS[kind]) if isinstance(kind, str) and kind in _OF_BLOCKS else block


def completed_message(body: dict[str, Any]) -> dict[str, Any]:
    """A message with all of its fields but those of its blocks."""
    return {**_with(body, _OF_MESSAGES), "usage": completed_usage(body["usage"])}


def completed_delta(delta: dict[str, Any], begun: Mapping[str, Any]) -> dict[str, Any]:
    """The delta that ends a message, with all of its fields; others are as the message began."""
    return {**delta, **{name: delta.get(name, begun.get(name)) for name in _OF_DELTAS}}


def completed_usage(usage: Mapping[str, Any], *, is_late: bool = False) -> dict[str, Any]:
    """Token counts with all of their fields; at the end of a stream (`is_late`) there are fewer."""
    made = _with(usage, _COUNTS if is_late else _OF_USAGE)
    counts = made["server_tool_use"]
    if isinstance(counts, Mapping):
        made["server_tool_use"] = {**_TOOL_COUNTS, **counts}
    return made


def _with(wire: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The object, and these fields if it lacks them."""
    return {**wire, **{name: value for name, value in fields.items() if name not in wire}}
