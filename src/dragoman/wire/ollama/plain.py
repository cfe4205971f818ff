"""What is plain in this dialect: texts, calls and results, as the types of their JSON."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from dragoman.wire.plain.writing import Written


class Function(Struct, forbid_unknown_fields=True, gc=False):
    """A tool's name, and its arguments."""

    name: str
    arguments: dict[str, Any]


class Call(Struct, forbid_unknown_fields=True, gc=False):
    """A call."""

    id: str
    function: Function


class User(Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    """A user's text."""

    content: str


class Assistant(Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True, gc=False):
    """A model's message."""

    content: str = ""
    tool_calls: list[Call] | UnsetType = UNSET


class Result(Struct, tag_field="role", tag="tool", forbid_unknown_fields=True, gc=False):
    """A result that is a text."""

    content: str
    tool_name: str
    tool_call_id: str


WRITTEN = Written(
    {"User": User, "Answer": Assistant, "Call": Call, "Function": Function, "Result": Result},
    user="User(t)",
    answer="Answer(t)",
    call="Call(i, Function(x, a))",
    called="Answer('' if s is U else s, b)",
    result="Result(t, x, i)",
)
