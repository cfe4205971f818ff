"""What is plain in this dialect: texts, calls and results, as the types of their JSON."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from dragoman.model.requests import Request
from dragoman.wire.gemini.dialect import encode_path
from dragoman.wire.gemini.tools import profiles_of
from dragoman.wire.plain.whole import Made, Whole, reals_of
from dragoman.wire.plain.writing import Written
from dragoman.wire.target import Target


class Text(Struct, gc=False):
    """A text."""

    text: str


class FunctionCall(Struct, gc=False):
    """A tool's name, the call's id, and the arguments."""

    name: str
    args: dict[str, Any]
    id: str


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
    call="Call(Function(x, a, i))",
    called="Model(b)",
    result="Result(Response(x, Output(t), i))",
    results="User(results)",
)  # fmt: skip


# --- whole requests


_REALS = {"temperature": "temperature", "top_p": "topP"}


def _body(request: Request, made: Made, _target: Target) -> tuple[dict[str, Any], str]:
    wire: dict[str, Any] = {}
    if made.instructions is not None:
        wire["systemInstruction"] = {"parts": [Text(made.instructions)]}
    wire["contents"] = made.items
    if made.tools:
        wire["tools"] = [{"functionDeclarations": made.tools}]
    settings: dict[str, Any] = {}
    if (limit := request.sampling.max_tokens) is not None:
        settings["maxOutputTokens"] = limit
    settings |= {_REALS[name]: value for name, value in reals_of(request).items()}
    if settings:
        wire["generationConfig"] = settings
    return wire, encode_path(request.model or "", stream=bool(request.stream))


def _tool(name: str, description: str | None, schema: Any) -> dict[str, Any]:
    about = {} if description is None else {"description": description}
    return {"name": name, **about, "parametersJsonSchema": schema}


WHOLE = Whole(_body, _tool, lambda target: profiles_of(target).loose)
