"""What is plain in this dialect: texts, calls and results, as the types of their JSON."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from dragoman.wire.plain.writing import Written


class Text(Struct, gc=False):
    """A text."""

    text: str


class FunctionCall(Struct, gc=False):
    """A tool's name, the call's id, and the arguments."""

    name: str
    id: str
    args: dict[str, Any]


class Call(Struct, gc=False, rename="camel"):
    """A call."""

    function_call: FunctionCall


class Output(Struct, gc=False):
    """What a tool returned."""

    output: str


class FunctionResponse(Struct, gc=False):
    """A tool's name, its result, and the call's id."""

    name: str
    response: Output
    id: str


class Response(Struct, gc=False, rename="camel"):
    """A result that is a text."""

    function_response: FunctionResponse


class User(Struct, tag_field="role", tag="user", gc=False):
    """A user's message, or the results of a round."""

    parts: list[Text | Response]


class Model(Struct, tag_field="role", tag="model", gc=False):
    """A model's message."""

    parts: list[Text | Call]


WRITTEN = Written(
    {"User": User, "Model": Model, "Part": Text, "Call": Call, "Function": FunctionCall,
     "Result": Response, "Response": FunctionResponse, "Output": Output},
    user="User([Part(t)])",
    answer="Model([Part(t)])",
    text="Part(t)",
    call="Call(Function(x, i, a))",
    called="Model(b)",
    result="Result(Response(x, Output(t), i))",
    results="User(results)",
)  # fmt: skip
