"""Validation of hand-made messages: the types of their fields, and the parts allowed per role."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.errors import InvalidInputError
from dragoman.model.content import AnyPart, parts_from
from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Origin, Part, Text
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.usage import FinishReason, Usage
from dragoman.model.value import expect, expect_number

_ASSISTANT, _TOOL = Role.ASSISTANT, Role.TOOL  # an enum member costs 200 ns to look up in 3.11

_FIELD_TYPES: dict[str, Any] = {
    "name": str,
    "id": str,
    "origin": Origin,
    "usage": Usage,
    "finish": FinishReason,
}


def check_fields(fields: dict[str, Any], known: Mapping[str, Any] = EMPTY) -> None:
    """Raises if a field has the wrong type; extras that are already `known` are skipped."""
    for name, value in fields.items():
        if value is not None and name in _FIELD_TYPES:
            expect(value, _FIELD_TYPES[name], f"Message.{name}")
    expect_number(fields.get("created_at"), "Message.created_at")
    if isinstance(extras := fields.get("extras"), Mapping):
        for name, of_dialect in extras.items():
            # Decoders store lists for some dialects; existing values are not checked again.
            if (
                not isinstance(of_dialect, list)
                and known.get(name, msgspec.UNSET) is not of_dialect
            ):
                expect(of_dialect, Mapping, "the extras of a dialect")


def check_parts(role: Role, parts: tuple[Any, ...], new: tuple[Any, ...]) -> None:
    """Raises if there are no parts, or new parts that are not allowed for this role."""
    if not parts:
        is_answer = role is _ASSISTANT
        what = "an assistant" if is_answer else f"a {role}"
        needs = "content or tool calls" if is_answer else "content"
        msg = f"{what} message needs {needs}; an empty string is allowed"
        raise InvalidInputError(msg)
    if role is _TOOL:
        for part in new:
            if not isinstance(part, ToolResult) or not part.call_id:
                msg = "a tool message may only hold tool results, each with the id of its call"
                raise InvalidInputError(msg)
        return
    refused = ToolResult if role is _ASSISTANT else ToolCall
    for part in new:
        if part.__class__ is refused:
            what = (
                "tool results belong in a tool message, not an assistant message"
                if role is _ASSISTANT
                else (f"a {role} message can't have tool calls; only an assistant message can")
            )
            raise InvalidInputError(what)


def is_plain_text(part: Part) -> bool:
    """Whether a part is text without citations and canonical extras."""
    return isinstance(part, Text) and not part.citations and "canonical" not in part.extras


def is_text_result(parts: tuple[Part, ...]) -> bool:
    """Whether this is a single tool result that holds only text."""
    only = parts[0]
    if len(parts) > 1 or not isinstance(only, ToolResult):
        return False
    return isinstance(only.content, str) or all(isinstance(part, Text) for part in only.content)


def checked_parts(item: Any) -> tuple[AnyPart, ...]:
    """Converts content to parts, and validates them."""
    if item is None:
        msg = "None is not valid content; an empty string is allowed"
        raise InvalidInputError(msg)
    parts = parts_from(item)
    for part in parts:
        part.check()
    return parts
