"""Tools that a history speaks of, declared where they must be (W63)."""

from __future__ import annotations

from dragoman.model.parts import Origin
from dragoman.model.requests import Request
from dragoman.model.tools import ToolChoice, make_definition
from dragoman.wire.losses import Note, Repair
from dragoman.wire.target import Target


def with_declared_tools(request: Request, target: Target, notes: list[Note]) -> Request:
    """The request with the tools of its history, which must not be called, if it has none."""
    if not target.needs_tools_for_history or request.tools:
        return request
    names = dict.fromkeys(call.name for message in request.messages for call in message.tool_calls)
    if not names:
        return request
    here = Origin(dialect=target.dialect)
    tools = tuple(
        make_definition(name, "Used earlier.", {"type": "object", "properties": {}}, origin=here)
        for name in names
    )
    notes.append(Repair("tools", "W63", "added", "the tools that the history speaks of"))
    return request.replace(tools=tools, tool_choice=ToolChoice("none"))
