"""Tools and answers shared by the agent tests."""

from __future__ import annotations

from typing import Any

from dragoman import Message, ToolCall, tool
from dragoman.testing import ScriptedModel


@tool
def weather(city: str) -> str:
    """The weather somewhere."""
    return f"rain in {city}"


@tool
async def clock(city: str) -> dict[str, Any]:
    """The time somewhere."""
    return {"city": city, "hour": 15}


def call(name: str, id: str = "call_1", **arguments: Any) -> ToolCall:
    """A call as a model makes it."""
    return ToolCall.create(id, name, arguments)


def asks(*calls: ToolCall, text: str = "") -> Message:
    """An answer that calls tools."""
    return (
        Message.assistant(text, tool_calls=calls) if text else Message.assistant(tool_calls=calls)
    )


def model(*steps: Any) -> ScriptedModel:
    """A scripted model with these answers."""
    return ScriptedModel(steps)
