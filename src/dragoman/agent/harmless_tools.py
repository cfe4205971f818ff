"""Example tools without side effects, for chats: the current time, and arithmetic."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from dragoman.errors import ToolRetry
from dragoman.model.functions.tool import tool

_MAX_BITS = 10_000
_MAX_CHARS = 200


@tool
def now(timezone: str = "") -> str:
    """The date and the time.

    Args:
        timezone: Where, such as Europe/Zurich or Tokyo; by default here.
    """
    there = _zone(timezone.strip()) if timezone.strip() else None
    moment = datetime.now(there) if there else datetime.now().astimezone()
    return f"{moment:%A, %d %B %Y, %H:%M:%S} ({moment.tzname()})"


def _zone(name: str) -> ZoneInfo:
    """A time zone by name, or by the name of a city in it, as small models write it."""
    city = name.rpartition(",")[0] or name
    wanted = city.rpartition("/")[2].strip().replace(" ", "_").lower()
    named = [each for each in available_timezones() if each.rpartition("/")[2].lower() == wanted]
    try:
        return ZoneInfo(name if name in available_timezones() else min(named, key=len))
    except (KeyError, OSError, ValueError):
        msg = "unknown time zone; use a name such as Europe/Zurich"
        raise ToolRetry(msg) from None


@tool
def calculate(expression: str) -> str:
    """The value of an arithmetic expression.

    Args:
        expression: Numbers and + - * / // % ** ( ), such as 6 * (7 + 1).
    """
    if len(expression) > _MAX_CHARS:
        msg = f"the expression must not exceed {_MAX_CHARS} characters"
        raise ToolRetry(msg)
    try:
        parsed = ast.parse(expression.strip(), mode="eval")
        return str(_value(parsed.body))
    except ZeroDivisionError:
        problem = "division by zero"
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        problem = "not a valid arithmetic expression"
    raise ToolRetry(problem)


_OPERATIONS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


def _value(node: ast.AST) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=op, operand=operand):
            return _done(op, _value(operand))
        case ast.BinOp(left=left, op=op, right=right):
            return _done(op, _value(left), _value(right))
        case _:
            raise ValueError


def _done(op: ast.AST, *numbers: float) -> float:
    if isinstance(op, ast.Pow) and _bits(*numbers) > _MAX_BITS:
        raise OverflowError
    result = _OPERATIONS[type(op)](*numbers) if type(op) in _OPERATIONS else None
    if not isinstance(result, (int, float)):  # such as the square root of a negative number
        raise ValueError  # noqa: TRY004 - all that is no number here is one thing to the caller
    return result


def _bits(base: float, exponent: float) -> float:
    return base.bit_length() * abs(exponent) if isinstance(base, int) else 0
