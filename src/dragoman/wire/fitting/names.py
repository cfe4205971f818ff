"""Names of tools as the target takes them, and back again on the way back (W6, W89).

A name that came off a wire (an MCP server's, with dots) gets an alias: what of it is allowed, and
a hash that keeps it apart from others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256

from dragoman.model.content import AnyPart
from dragoman.model.messages import Message
from dragoman.model.requests import AnyTool, Request
from dragoman.model.tools import ToolCall, ToolDefinition, ToolResult
from dragoman.wire.context import NOTHING, Context
from dragoman.wire.losses import Note, Repair
from dragoman.wire.target import Target

_REFUSED = re.compile(r"[^A-Za-z0-9_]+", re.ASCII)
_HASH = 8
_REASON = "a name that is accepted; the answer has its own again"


def with_accepted_names(
    request: Request,
    target: Target,
    calls: Iterable[ToolCall],
    notes: list[Note],
    kept: frozenset[str] = frozenset(),
) -> tuple[Request, Context]:
    """The request with aliases for names that the target refuses, and the way back.

    `calls` are all that there are in its messages; names that are to be kept stay.
    """
    used = dict.fromkeys((*_declared(request), *(call.name for call in calls)))
    refused = [name for name in used if name not in kept and not target.accepts_name(name)]
    if not refused:
        return request, NOTHING
    aliases = {name: _alias(name, target) for name in refused}
    notes.extend(Repair(path, "W6", "renamed", _REASON) for path in _places(request, aliases))
    changed = request.replace(
        tools=tuple(_tool(tool, aliases) for tool in request.tools),
        messages=tuple(_message(message, aliases) for message in request.messages),
    )
    choice = request.tool_choice
    if choice is not None and any(name in aliases for name in choice.names):
        names = tuple(aliases.get(name, name) for name in choice.names)
        changed = changed.replace(tool_choice=choice.replace(names=names))
    return changed, Context({alias: name for name, alias in aliases.items()})


def _places(request: Request, aliases: dict[str, str]) -> Iterator[str]:
    """Where these names stand."""
    for index, tool in enumerate(request.tools):
        if isinstance(tool, ToolDefinition) and tool.name in aliases:
            yield f"tools[{index}].name"
    for index, message in enumerate(request.messages):
        for place, part in enumerate(message.parts):
            if (isinstance(part, ToolCall) and part.name in aliases) or (
                isinstance(part, ToolResult) and part.tool_name in aliases
            ):
                yield f"messages[{index}].parts[{place}]"
    if request.tool_choice is not None and not aliases.keys().isdisjoint(request.tool_choice.names):
        yield "tool_choice"


def _declared(request: Request) -> list[str]:
    return [tool.name for tool in request.tools if isinstance(tool, ToolDefinition)]


def _alias(name: str, target: Target) -> str:
    mark = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    room = target.tool_name_length - _HASH - 1
    stem = _REFUSED.sub("_", name).strip("_")[:room]
    return f"{stem or 'tool'}_{mark}"


def _tool(tool: AnyTool, aliases: dict[str, str]) -> AnyTool:
    if isinstance(tool, ToolDefinition) and tool.name in aliases:
        return tool.replace_unchecked(name=aliases[tool.name])
    return tool


def _message(message: Message, aliases: dict[str, str]) -> Message:
    parts = tuple(_part(part, aliases) for part in message.parts)
    if all(new is old for new, old in zip(parts, message.parts, strict=True)):
        return message
    return message.replace_unchecked(parts=parts)


def _part(part: AnyPart, aliases: dict[str, str]) -> AnyPart:
    if isinstance(part, ToolCall) and part.name in aliases:
        return part.replace_unchecked(name=aliases[part.name])
    if isinstance(part, ToolResult) and part.tool_name in aliases:
        return part.replace_unchecked(tool_name=aliases[part.tool_name])
    return part
