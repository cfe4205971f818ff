"""What is plain in this dialect: texts, calls and results, as the types of their JSON."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.wire.ollama.request import PATH
from dragoman.wire.ollama.tools import PROFILES
from dragoman.wire.plain.whole import Made, Whole, reals_of
from dragoman.wire.plain.writing import NotPlain, Written
from dragoman.wire.target import Target


class Function(Struct, forbid_unknown_fields=True, gc=False):
    """A tool's name, and its arguments."""

    name: str
    arguments: dict[str, Any]


class Call(Struct, forbid_unknown_fields=True, gc=False):
    """A call."""

    function: Function
    id: str


class System(Struct, tag_field="role", tag="system", forbid_unknown_fields=True, gc=False):
    """Instructions."""

    content: str


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
    call="Call(Function(x, a), i)",
    called="Answer('' if s is U else s, b)",
    result="Result(t, x, i)",
)


# --- whole requests


def _body(request: Request, made: Made, _target: Target) -> tuple[dict[str, Any], str]:
    items = made.items
    if made.instructions is not None:
        if made.role is not Role.SYSTEM:
            raise NotPlain
        items = [System(made.instructions), *items]
    wire: dict[str, Any] = {"model": request.model}
    if request.stream is not None:
        wire["stream"] = request.stream
    options: dict[str, Any] = {}
    if (limit := request.sampling.max_tokens) is not None:
        options["num_predict"] = limit
    options |= reals_of(request)
    if options:
        wire["options"] = options
    wire["messages"] = items
    if made.tools:
        wire["tools"] = made.tools
    wire.setdefault("stream", False)  # the server's default is another
    return wire, PATH


_decode = Decoder().decode


def _tool(name: str, description: str | None, schema: Any) -> dict[str, Any]:
    if type(schema) is Raw:
        schema = _decode(schema)
    if "description" in schema:
        raise NotPlain  # it moves to the tool's
    about = {} if description is None else {"description": description}
    return {"type": "function", "function": {"name": name, **about, "parameters": schema}}


WHOLE = Whole(_body, _tool, lambda _: PROFILES.loose)
