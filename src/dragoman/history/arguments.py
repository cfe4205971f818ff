"""Validates the arguments of history methods.

Error messages name the expected and the actual type, never the value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from dragoman.errors import InvalidInputError
from dragoman.history.branches import Branch
from dragoman.model.content import AnyPart
from dragoman.model.parts import Part
from dragoman.model.requests import AnyTool
from dragoman.model.tools import ServerTool, ToolDefinition
from dragoman.model.value import expect

_MAX_COUNT = 2**31 - 1  # more than any history has; databases are limited to 2**63


def id_of(id: Any) -> str:
    """Checks a message id."""
    expect(id, str, "the id of a message")
    return str(id)


def number_of(count: Any, what: str) -> int:
    """Checks a count, which must not be negative."""
    if type(count) is not int:
        _refuse(f"{what} must be an int", count)
    if count < 0:
        msg = f"{what} must not be negative"
        raise InvalidInputError(msg)
    return min(count, _MAX_COUNT)


def version_of(version: Any) -> int | None:
    """Checks an expected version, which may be `None`."""
    if version is None:
        return None
    if type(version) is not int or version < 0:
        _refuse("expected_version must be the version of a history", version)
    return int(version)


def branch_of(branch: Any) -> int:
    """The number of a branch."""
    if isinstance(branch, Branch):
        return branch.number
    return number_of(branch, "the number of a branch")


def tools_of(tools: Any) -> tuple[AnyTool, ...]:
    """Checks the tools that are sent with the messages."""
    return _items(tools, (ToolDefinition, ServerTool), "tools")


def parts_of(system: Any) -> tuple[AnyPart, ...]:
    """Checks the system instructions that are sent with the messages."""
    return _items(system, Part, "system instructions")


def _items(values: Any, kinds: Any, what: str) -> tuple[Any, ...]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        _refuse(f"{what} must be a sequence", values)
    items = tuple(values)
    for item in items:
        expect(item, kinds, f"each of the {what}")
    return items


def _refuse(expected: str, value: Any) -> NoReturn:
    msg = f"{expected}, not {type(value).__name__}"
    raise InvalidInputError(msg)
