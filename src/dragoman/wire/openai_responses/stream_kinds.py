"""How each kind of part is streamed: the names of its events, and where its item has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Opaque, Refusal, ServerToolCall, Text, Thinking
from dragoman.model.tools import ToolCall
from dragoman.wire.openai_responses.content import encode_unknown_part
from dragoman.wire.openai_responses.messages import is_content
from dragoman.wire.openai_responses.reasoning import shown_form


class Kind(NamedTuple):
    """One of them; empty names are events that there are none of."""

    delta: str = ""
    done: str = ""
    text: str = ""
    """The field that has the whole text: of the event at its end, of its entry or of its item."""
    field: str = ""
    """The item's list of such parts; nothing where the item is the part."""
    place: str = ""
    part: str = ""
    entry: Mapping[str, Any] = EMPTY
    is_servers: bool = False
    """Whether the text is only a piece of what the item says, of a tool that runs over there."""


_PART, _SUMMARY_PART = "response.content_part", "response.reasoning_summary_part"
_CONTENT = ("content", "content_index", _PART)

TEXT = Kind(
    "response.output_text.delta", "response.output_text.done", "text", *_CONTENT,
    {"type": "output_text", "text": "", "annotations": [], "logprobs": []},
)  # fmt: skip
_REFUSAL = Kind(
    "response.refusal.delta", "response.refusal.done", "refusal", *_CONTENT,
    {"type": "refusal", "refusal": ""},
)  # fmt: skip
_REASONING = Kind(
    "response.reasoning_text.delta", "response.reasoning_text.done", "text", *_CONTENT,
    {"type": "reasoning_text", "text": ""},
)  # fmt: skip
_SUMMARY = Kind(
    "response.reasoning_summary_text.delta", "response.reasoning_summary_text.done", "text",
    "summary", "summary_index", _SUMMARY_PART, {"type": "summary_text", "text": ""},
)  # fmt: skip
FUNCTION = Kind(
    "response.function_call_arguments.delta", "response.function_call_arguments.done", "arguments"
)
_CUSTOM = Kind(
    "response.custom_tool_call_input.delta", "response.custom_tool_call_input.done", "input"
)
_SERVERS = {
    "code_interpreter": Kind(
        "response.code_interpreter_call_code.delta", "response.code_interpreter_call_code.done",
        "code", is_servers=True,
    ),
    "mcp": Kind(
        "response.mcp_call_arguments.delta", "response.mcp_call_arguments.done", "arguments",
        is_servers=True,
    ),
}  # fmt: skip
_WHOLE = Kind()
_SPEECH: dict[type, Kind] = {Text: TEXT, Refusal: _REFUSAL}
# What is sealed is nowhere but in the item itself.
_THOUGHTS: dict[str, Kind] = {"summary": _SUMMARY, "full": _REASONING}


def kind_of(part: AnyPart) -> Kind:
    """How a part is streamed."""
    if isinstance(part, Opaque) and is_content(part):
        entry = encode_unknown_part(part)
        return Kind("", "", "", *_CONTENT, entry if isinstance(entry, Mapping) else EMPTY)
    if isinstance(part, ToolCall):
        return FUNCTION if part.kind == "function" else _CUSTOM
    if isinstance(part, Thinking):
        return _THOUGHTS.get(shown_form(part), _WHOLE)
    if isinstance(part, ServerToolCall):
        return _SERVERS.get(part.name, _WHOLE)
    return _SPEECH.get(type(part), _WHOLE)


def text_of(part: AnyPart) -> str:
    """The words that a part has so far."""
    if isinstance(part, (Text, Refusal, Thinking)):
        return part.text
    if isinstance(part, ToolCall):
        return part.raw if part.raw is not None else part.raw_arguments if part.input else ""
    return ""
