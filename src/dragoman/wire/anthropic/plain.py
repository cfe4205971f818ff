"""What is plain in this dialect: texts, calls and results, as the types of their JSON."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from dragoman.model.requests import Request
from dragoman.wire.anthropic.request import PATH
from dragoman.wire.anthropic.tools import anthropic_profiles
from dragoman.wire.plain.whole import Made, Whole
from dragoman.wire.plain.writing import NotPlain, Written
from dragoman.wire.target import Target


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


# --- whole requests


def _body(request: Request, made: Made, _target: Target) -> tuple[dict[str, Any], str]:
    wire: dict[str, Any] = {"model": request.model}
    if request.stream is not None:
        wire["stream"] = request.stream
    if request.sampling.max_tokens is None:
        raise NotPlain  # it is required
    wire["max_tokens"] = request.sampling.max_tokens
    if made.tools:
        wire["tools"] = made.tools
    if made.instructions is not None:
        wire["system"] = made.instructions
    wire["messages"] = made.items
    return wire, PATH


def _tool(name: str, description: str | None, schema: Any) -> dict[str, Any]:
    about = {} if description is None else {"description": description}
    return {"name": name, **about, "input_schema": schema}


WHOLE = Whole(_body, _tool, lambda target: anthropic_profiles(target).loose)
