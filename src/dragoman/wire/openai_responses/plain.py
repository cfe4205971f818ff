"""What is plain in this dialect: texts, calls and results, as the types of their JSON."""

from __future__ import annotations

from msgspec import Struct

from dragoman.wire.openai_responses.argument_names import has_long_names
from dragoman.wire.plain.writing import Written


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
