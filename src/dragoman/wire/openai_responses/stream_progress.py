"""Progress events for calls of other providers' built-in tools, as OpenAI sends for its own.

Streams of this dialect already have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dragoman.model.content import AnyPart
from dragoman.model.parts import ServerToolCall, ServerToolResult
from dragoman.wire.openai_responses.stream import CODE, MCP, Kind
from dragoman.wire.shown_calls import is_counterpart

ProgressEvent = tuple[str, Mapping[str, Any]]
"""The type of an event and its specific fields."""


class _Progress(NamedTuple):
    """The progress events of a kind of call."""

    name: str
    under_way: str | None = None
    text: Kind | None = None
    """How its input is streamed before it runs."""
    can_fail: bool = False


_PROGRESS_BY_TOOL = {
    "web_search": _Progress("web_search_call", "searching"),
    "file_search": _Progress("file_search_call", "searching"),
    "code_interpreter": _Progress("code_interpreter_call", "interpreting", CODE),
    "mcp": _Progress("mcp_call", None, MCP, can_fail=True),
}


def _progress(part: AnyPart) -> _Progress | None:
    is_call = isinstance(part, ServerToolCall) and is_counterpart(part)
    return (
        _PROGRESS_BY_TOOL.get(part.name) if is_call and isinstance(part, ServerToolCall) else None
    )


def initial_item(item: dict[str, Any], part: AnyPart) -> dict[str, Any]:
    """The item in its initial state."""
    course = _progress(part)
    if course is None:
        return item
    item = {**item, "status": "in_progress"}
    if course.text is not None:
        item[course.text.text] = ""
    return item


def start_events(part: AnyPart) -> Iterator[ProgressEvent]:
    """The progress events after the start of an item."""
    course = _progress(part)
    if course is None or not isinstance(part, ServerToolCall):
        return
    yield f"response.{course.name}.in_progress", {}
    if course.text is not None:
        given = part.input if isinstance(part.input, Mapping) else {}
        value = given.get(course.text.text)
        whole = value if isinstance(value, str) else ""
        yield course.text.delta, {"delta": whole}
        yield course.text.done, {course.text.text: whole}
    if course.under_way is not None:
        yield f"response.{course.name}.{course.under_way}", {}


def end_events(parts: Iterable[AnyPart]) -> Iterator[ProgressEvent]:
    """The progress events before the end of an item."""
    call, *results = parts
    course = _progress(call)
    if course is None:
        return
    failed = any(isinstance(part, ServerToolResult) and part.is_error for part in results)
    yield f"response.{course.name}.{'failed' if failed and course.can_fail else 'completed'}", {}
