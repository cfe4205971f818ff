"""Re-exports tool calls, tool results and tool definitions."""

from __future__ import annotations

from dragoman.model.tool_calls import (
    ResultPart,
    ToolCall,
    ToolCallDelta,
    ToolResult,
    check_tool_name,
    make_call,
    make_result,
)
from dragoman.model.tool_definitions import (
    LongDescriptionWarning,
    ServerTool,
    ToolChoice,
    ToolDefinition,
    make_definition,
    schema_text,
    with_schema_text,
)

__all__ = [
    "LongDescriptionWarning",
    "ResultPart",
    "ServerTool",
    "ToolCall",
    "ToolCallDelta",
    "ToolChoice",
    "ToolDefinition",
    "ToolResult",
    "check_tool_name",
    "make_call",
    "make_definition",
    "make_result",
    "schema_text",
    "with_schema_text",
]
