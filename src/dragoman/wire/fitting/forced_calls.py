"""Forces a tool call on servers that have no tool choice, but follow an output schema.

The answer must fit a schema of calls, `{"name": …, "arguments": {…}}`; `Context` turns it back into
a call. The tools themselves are sent too, since the model doesn't see the schema.
"""

from __future__ import annotations

from typing import Any

from dragoman.model.requests import Output, Request
from dragoman.model.tools import ToolChoice, ToolDefinition
from dragoman.wire.fitting.tools import is_forced
from dragoman.wire.losses import Note, Repair
from dragoman.wire.target import Target

_SCHEMA = "expressed by an output schema; the answer is turned into a call"


def with_forced_call(
    request: Request, target: Target, notes: list[Note]
) -> tuple[Request, frozenset[str]]:
    """Express a forced call by an output schema; also returns the names that may be called."""
    choice = request.tool_choice
    if not target.tools.forces_by_schema or choice is None or not is_forced(choice):
        return request, frozenset()
    output, tools = request.output, request.tools
    names = frozenset(choice.names) or frozenset(tool.name for tool in tools)
    offered = [tool for tool in tools if isinstance(tool, ToolDefinition) and tool.name in names]
    if not offered or (output is not None and output.format != "text"):
        return request, frozenset()
    calls = [_call(tool) for tool in offered]
    schema = calls[0] if len(calls) == 1 else {"anyOf": calls}
    notes.append(Repair("tool_choice", "W74", "retyped", _SCHEMA))
    free = ToolChoice("auto", parallel=choice.parallel)
    if choice.mode == "allowed":
        free = ToolChoice("allowed", choice.names, parallel=choice.parallel)
    request = request.replace_trusted(
        output=Output(format="schema", schema=schema), tool_choice=free
    )
    return request, frozenset(tool.name for tool in offered)


def _call(tool: ToolDefinition) -> dict[str, Any]:
    arguments = {"type": "object"} if tool.parameters is None else dict(tool.parameters)
    return {
        "type": "object",
        "properties": {"name": {"const": tool.name}, "arguments": arguments},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }
