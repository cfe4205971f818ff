"""How items stream, made from the rows that grow: which events announce and continue what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Opaque, ServerToolCall, ServerToolResult, Text, Thinking
from dragoman.model.tools import ToolCall
from dragoman.wire.openai_responses.layout_writer import is_content, shown_form
from dragoman.wire.openai_responses.tables import CALL_SHAPES, OUTPUTS, THOUGHTS, payload_of
from dragoman.wire.openai_responses.tools_client import client_tool_of
from dragoman.wire.rows import Shape
from dragoman.wire.shown_calls import is_counterpart

LISTS = {
    "message": {"content": ("response.content_part", "content_index")},
    "reasoning": {
        "summary": ("response.reasoning_summary_part", "summary_index"),
        "content": ("response.content_part", "content_index"),
    },
}
"""The lists of an item that hold its parts, in the order of the parts: the events that begin and
end one, and the event field with its index."""
PARTS = {field: names for lists in LISTS.values() for field, names in lists.items()}
HOLDERS: Mapping[str, Mapping[str, Any]] = {
    "message": {"type": "message", "role": "assistant", "status": "completed"},
    "reasoning": {"type": "reasoning", "summary": []},
}
"""Items of which the server announced nothing."""


class Kind(NamedTuple):
    """How a kind of part is streamed."""

    event: str = ""
    """Its `delta` and `done` events begin with this; empty: it comes whole."""
    text: str = ""
    """The field with the whole text, in the done event, in its entry or in its item."""
    field: str = ""
    """The list of such parts in the item; empty if the item is the part."""
    entry: Mapping[str, Any] = EMPTY
    """Its initial entry in the list."""
    type: type[Any] | None = None
    is_servers: bool = False
    """Whether the item is a server tool call, of which the text is only a part."""

    @property
    def part(self) -> str:
        """What its `added` and `done` events begin with."""
        return PARTS[self.field][0]

    @property
    def place(self) -> str:
        """The event field with its index; empty if it has none."""
        return PARTS[self.field][1] if self.field else ""


def _kind(shape: Shape[Any], field: str = "", **more: Any) -> Kind:
    row = next(row for row in shape.rows if row.grows)
    event, entry = row.grows.removesuffix(".delta"), {"type": shape.tag, row.wire: "", **more}
    return Kind(event, row.wire, field, entry if field else EMPTY, shape.kind if field else None)


_OUTPUT_TEXT, _REFUSAL = OUTPUTS.shapes
TEXT = _kind(_OUTPUT_TEXT, "content", annotations=[], logprobs=[])
REASONING = _kind(THOUGHTS["full"], "content")
_ENTRIES = {Text: TEXT, _REFUSAL.kind: _kind(_REFUSAL, "content")}
_THINKING = {"summary": _kind(THOUGHTS["summary"], "summary"), "full": REASONING}
"""Encrypted content is not streamed; it is only in the item itself."""
_CALLS = {kind: _kind(shape) for kind, shape in CALL_SHAPES.items()}
FUNCTION = _CALLS["function"]
_SERVERS = {
    "code_interpreter": Kind("response.code_interpreter_call_code", "code", is_servers=True),
    "mcp": Kind("response.mcp_call_arguments", "arguments", is_servers=True),
}
_WHOLE = Kind()
TEXTS = {f"{kind.event}.delta": kind for kind in (*_ENTRIES.values(), *_THINKING.values())}
CALLS = {f"{kind.event}.delta": kind for kind in (*_CALLS.values(), *_SERVERS.values())}
ARGUMENTS = {shape.tag: _CALLS[kind].text for kind, shape in CALL_SHAPES.items()}
"""The field that grows, by type of item."""
SERVER_TEXTS = {f"{name}_call": kind.text for name, kind in _SERVERS.items()}


def streamed_as(part: AnyPart) -> Kind:
    """How a part is streamed."""
    if isinstance(part, Opaque) and is_content(part):
        entry = payload_of(part)
        return Kind("", "", "content", entry if isinstance(entry, Mapping) else EMPTY)
    if isinstance(part, ToolCall):
        return _WHOLE if client_tool_of(part) is not None else _CALLS[part.kind]
    if isinstance(part, Thinking):
        return _THINKING.get(shown_form(part), _WHOLE)
    if isinstance(part, ServerToolCall):
        return _SERVERS.get(part.name, _WHOLE)
    return _ENTRIES.get(type(part), _WHOLE)


# --- progress events for calls of other providers' built-in tools, as OpenAI sends for its own

ProgressEvent = tuple[str, Mapping[str, Any]]
"""The type of an event and its specific fields."""
_PROGRESS = {"web_search": "searching", "file_search": "searching",
             "code_interpreter": "interpreting", "mcp": None}  # fmt: skip
"""What a tool does between its start and its end, by name. Only MCP servers can fail."""


def _has_progress(part: AnyPart) -> bool:
    return isinstance(part, ServerToolCall) and part.name in _PROGRESS and is_counterpart(part)


def initial_item(item: dict[str, Any], part: ServerToolCall) -> dict[str, Any]:
    """The item in its initial state."""
    if not _has_progress(part):
        return item
    kind = _SERVERS.get(part.name)
    return {**item, "status": "in_progress"} | ({} if kind is None else {kind.text: ""})


def start_events(part: ServerToolCall) -> Iterator[ProgressEvent]:
    """The progress events after the start of an item."""
    if not _has_progress(part):
        return
    yield f"response.{part.name}_call.in_progress", {}
    kind = _SERVERS.get(part.name)
    if kind is not None:
        value = part.input.get(kind.text) if isinstance(part.input, Mapping) else None
        whole = value if isinstance(value, str) else ""
        yield f"{kind.event}.delta", {"delta": whole}
        yield f"{kind.event}.done", {kind.text: whole}
    if _PROGRESS[part.name] is not None:
        yield f"response.{part.name}_call.{_PROGRESS[part.name]}", {}


def end_events(parts: Iterable[AnyPart]) -> Iterator[ProgressEvent]:
    """The progress events before the end of an item."""
    call, *results = parts
    if isinstance(call, ServerToolCall) and _has_progress(call):
        has_failed = any(isinstance(each, ServerToolResult) and each.is_error for each in results)
        end = "failed" if has_failed and call.name == "mcp" else "completed"
        yield f"response.{call.name}_call.{end}", {}
