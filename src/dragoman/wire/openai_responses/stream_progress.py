"""The news of calls that another provider ran, as OpenAI tells them of its own.

Only of those: a stream of this dialect has them itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dragoman.model.content import AnyPart
from dragoman.model.parts import ServerToolCall, ServerToolResult
from dragoman.wire.openai_responses.stream import CODE, MCP, Kind
from dragoman.wire.shown_calls import is_counterpart

News = tuple[str, Mapping[str, Any]]
"""The type of an event, and the fields that only it has."""


class _Course(NamedTuple):
    """How a kind of call goes on, by the names of its events."""

    name: str
    under_way: str | None = None
    text: Kind | None = None
    """How what it says is streamed, before it is under way."""
    can_fail: bool = False


_COURSES = {
    "web_search": _Course("web_search_call", "searching"),
    "file_search": _Course("file_search_call", "searching"),
    "code_interpreter": _Course("code_interpreter_call", "interpreting", CODE),
    "mcp": _Course("mcp_call", None, MCP, can_fail=True),
}


def _course(part: AnyPart) -> _Course | None:
    is_call = isinstance(part, ServerToolCall) and is_counterpart(part)
    return _COURSES.get(part.name) if is_call and isinstance(part, ServerToolCall) else None


def announced(item: dict[str, Any], part: AnyPart) -> dict[str, Any]:
    """The item as it is when it begins."""
    course = _course(part)
    if course is None:
        return item
    item = {**item, "status": "in_progress"}
    if course.text is not None:
        item[course.text.text] = ""
    return item


def news_of_beginning(part: AnyPart) -> Iterator[News]:
    """What is told of a call behind the beginning of its item."""
    course = _course(part)
    if course is None or not isinstance(part, ServerToolCall):
        return
    yield f"response.{course.name}.in_progress", {}
    if course.text is not None:
        given = part.input if isinstance(part.input, Mapping) else {}
        said = given.get(course.text.text)
        whole = said if isinstance(said, str) else ""
        yield course.text.delta, {"delta": whole}
        yield course.text.done, {course.text.text: whole}
    if course.under_way is not None:
        yield f"response.{course.name}.{course.under_way}", {}


def news_of_end(parts: Iterable[AnyPart]) -> Iterator[News]:
    """What is told of a call before the end of its item."""
    call, *results = parts
    course = _course(call)
    if course is None:
        return
    failed = any(isinstance(part, ServerToolResult) and part.is_error for part in results)
    yield f"response.{course.name}.{'failed' if failed and course.can_fail else 'completed'}", {}
