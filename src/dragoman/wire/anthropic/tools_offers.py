"""Tools added or removed during a conversation (`tool_addition`, `tool_removal`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.frozen import thaw
from dragoman.wire.anthropic.tools import decode_tools
from dragoman.wire.tool_offers import ToolChange, ToolOffers


def _change(payload: Mapping[str, Any]) -> ToolChange | None:
    """Decode a block; None if unknown, or if it is about single tools of an MCP server."""
    kind, tool = payload.get("type"), payload.get("tool")
    if kind not in ("tool_addition", "tool_removal") or not isinstance(tool, Mapping):
        return None
    definition = tool.get("definition")
    if kind == "tool_addition" and isinstance(definition, Mapping):
        return ToolChange(decode_tools([thaw(definition)]))
    name = tool.get("name", tool.get("tool_name"))
    if tool.get("type") != "tool_reference" or type(name) is not str:
        return None
    return ToolChange(loaded=(name,)) if kind == "tool_addition" else ToolChange(removed=(name,))


OFFERS = ToolOffers(change=_change)
