"""What is plain in this dialect: texts, calls and results, as the types of their JSON."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from dragoman.model.requests import UNSAID, Request
from dragoman.wire.openai_responses.argument_names import has_long_names
from dragoman.wire.openai_responses.request import PATH
from dragoman.wire.openai_strict_schemas import openai_profiles
from dragoman.wire.plain.whole import Made, Whole, reals_of
from dragoman.wire.plain.writing import Written
from dragoman.wire.target import Target


class Message(Struct, gc=False):
    """A text of the user or the model."""

    role: str
    content: str


class FunctionCall(Struct, tag_field="type", tag="function_call", gc=False):
    """A call."""

    name: str
    arguments: str
    call_id: str


class FunctionOutput(Struct, tag_field="type", tag="function_call_output", gc=False):
    """A result that is a text."""

    output: str
    call_id: str


WRITTEN = Written(
    {
        "Message": Message,
        "Call": FunctionCall,
        "Output": FunctionOutput,
        "has_long": has_long_names,
    },
    user="Message('user', t)",
    answer="Message('assistant', t)",
    text="Message('assistant', t)",
    call="Call(x, a, i)",
    result="Output(t, i)",
    parses=False,
    refuses="has_long(a)",
)


# --- whole requests


def _body(request: Request, made: Made, _target: Target) -> tuple[dict[str, Any], str]:
    items: Any = made.items
    if made.instructions is not None and made.role is not None:
        items = [Message(made.role.value, made.instructions), *items]
    elif len(items) == 1 and type(items[0]) is Message:
        items = items[0].content
    wire: dict[str, Any] = {"model": request.model}
    if request.stream is not None:
        wire["stream"] = request.stream
    if (limit := request.sampling.max_tokens) is not None:
        wire["max_output_tokens"] = limit
    if request.sampling is not UNSAID:
        wire |= reals_of(request)
    if made.tools:
        wire["tools"] = made.tools
    wire["input"] = items
    return wire, PATH


def _tool(name: str, description: str | None, schema: Any) -> dict[str, Any]:
    about = {} if description is None else {"description": description}
    return {"type": "function", "name": name, **about, "parameters": schema, "strict": False}


WHOLE = Whole(_body, _tool, lambda target: openai_profiles(target).loose)
