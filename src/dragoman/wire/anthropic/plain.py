"""What is plain in this dialect: texts, calls and results, as the types of their JSON."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from dragoman.wire.plain.writing import Written


class Text(Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    """A text among other blocks."""

    text: str


class ToolUse(Struct, tag_field="type", tag="tool_use", forbid_unknown_fields=True, gc=False):
    """A call."""

    id: str
    name: str
    input: dict[str, Any]


class ToolResult(Struct, tag_field="type", tag="tool_result", forbid_unknown_fields=True, gc=False):
    """A result that is a text."""

    tool_use_id: str
    content: str


class User(Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    """A user's message, or the results of a round."""

    content: str | list[Text | ToolResult]


class Assistant(Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True, gc=False):
    """A model's message."""

    content: str | list[Text | ToolUse]


WRITTEN = Written(
    {"User": User, "Answer": Assistant, "Block": Text, "Use": ToolUse, "Result": ToolResult},
    user="User(t)",
    answer="Answer(t)",
    text="Block(t)",
    call="Use(i, x, a)",
    called="Answer(b)",
    result="Result(i, t)",
    results="User(results)",
)
