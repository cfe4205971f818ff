"""Compares conversations without their tool call ids, which change between providers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dragoman.model.parts import Part, ServerToolCall, ServerToolResult
from dragoman.model.tools import ToolCall, ToolResult

if TYPE_CHECKING:
    from dragoman.model.messages import Message


def equal_ignoring_call_ids(mine: Iterable[Message], theirs: Iterable[Message]) -> bool:
    """Whether two conversations are equal up to a one-to-one renaming of call ids.

    Ids are numbered by first appearance, so which result belongs to which call still counts.
    """
    return _numbered(mine) == _numbered(theirs)


def _numbered(messages: Iterable[Message]) -> list[tuple[Any, ...]]:
    """The compared fields of each message, with call ids replaced by numbers."""
    numbers: dict[str, str] = {}
    return [
        (type(each), each.role, each.name, tuple([_part(part, numbers) for part in each.parts]),
         each.metadata)
        for each in messages
    ]  # fmt: skip


def _part(part: Part, numbers: dict[str, str]) -> Part:
    if isinstance(part, ToolCall):
        return part.replace_unchecked(id=_number(part.id, numbers))
    if isinstance(part, ToolResult):
        return part.replace_unchecked(call_id=_number(part.call_id, numbers))
    if isinstance(part, (ServerToolCall, ServerToolResult)) and part.call_id is not None:
        return part.replace_unchecked(call_id=_number(part.call_id, numbers))
    return part


def _number(call_id: str, numbers: dict[str, str]) -> str:
    return numbers.setdefault(call_id, str(len(numbers)))
