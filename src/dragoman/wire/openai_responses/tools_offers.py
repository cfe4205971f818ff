"""Namespaces of tools, and tools added during a conversation (`additional_tools`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.frozen import thaw
from dragoman.model.requests import AnyTool
from dragoman.model.tools import ServerTool
from dragoman.wire.openai_responses.tools import decode_tools
from dragoman.wire.tool_offers import Group, ToolChange, ToolOffers


def _tools(wire: Any) -> tuple[AnyTool, ...] | None:
    if not isinstance(wire, (list, tuple)):
        return None
    return decode_tools(thaw(list(wire)))


def _group(tool: ServerTool) -> Group | None:
    payload = tool.payload
    name, about, tools = payload.get("name"), payload.get("description"), payload.get("tools")
    inner = _tools(tools) if tool.name == "namespace" and type(name) is str and name else None
    if inner is None:
        return None
    return Group(str(name), about if type(about) is str else "", inner)


def _change(payload: Mapping[str, Any]) -> ToolChange | None:
    if payload.get("type") != "additional_tools":
        return None
    added = _tools(payload.get("tools"))
    return None if added is None else ToolChange(added)


OFFERS = ToolOffers(_group, _change, group_field="namespace")
