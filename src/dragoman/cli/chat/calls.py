"""Tool calls and results on one line: shortened, with control characters made visible."""

from __future__ import annotations

from typing import Any

from dragoman.cli.screen import harmless_line
from dragoman.model.jsontext import dumps
from dragoman.model.tools import ToolCall, ToolResult

_ARGUMENT, _ARGUMENTS, _RESULT = 40, 90, 90


def call_line(call: ToolCall) -> str:
    """A call in Python syntax.

    >>> call_line(ToolCall.create("1", "weather", {"city": "Basel", "days": 3}))
    'weather(city="Basel", days=3)'
    """
    return f"{harmless_line(call.name)}({shortened(_arguments(call), _ARGUMENTS)})"


def _arguments(call: ToolCall) -> str:
    if not call.has_valid_arguments:
        return harmless_line(call.raw_arguments)
    given = (f"{name}={_value(value)}" for name, value in call.arguments.items())
    return harmless_line(", ".join(given))


def _value(value: Any) -> str:
    return shortened(dumps(value).decode(), _ARGUMENT)


def result_line(result: ToolResult) -> str:
    """The result of a tool, or its error."""
    return shortened(harmless_line(result.text.strip()), _RESULT)


def shortened(text: str, most: int) -> str:
    """The text, truncated to `most` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
