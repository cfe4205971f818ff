"""Tools that the server ran: Groq's `executed_tools`, where one object is call and result."""

from __future__ import annotations

from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.parts import Origin, ServerToolCall, ServerToolResult
from dragoman.wire.openai_chat.spelling import is_list, is_object, laid, left_over

FIELD = "executed_tools"
_OUTCOME = ("output", "search_results", "code_results", "browser_results")


def decode_executed(wire: Any, origin: Origin | None) -> list[AnyPart]:
    """A call and its result for each executed tool; none where one of them is malformed."""
    parts: list[AnyPart] = []
    for item in wire if is_list(wire) else ():
        name = item.get("type") if is_object(item) else None
        if not is_object(item) or not isinstance(name, str):
            return []
        known = (
            {"type", "arguments", *_OUTCOME}
            if item.get("arguments") is not None
            else {"type", *_OUTCOME}
        )
        extras = left_over(item, known)
        parts.append(
            ServerToolCall(name, input=item.get("arguments"), origin=origin, extras=extras)
        )
        outcome = {key: item[key] for key in _OUTCOME if key in item}
        if outcome:
            parts.append(ServerToolResult(name, content=outcome, origin=origin))
    return parts


def encode_executed(
    part: ServerToolCall | ServerToolResult, executed: list[dict[str, Any]]
) -> None:
    """Write a call as a new executed tool, or a result into the last one."""
    if isinstance(part, ServerToolCall):
        arguments = {} if part.input is None else {"arguments": part.input}
        executed.append(laid({"type": part.name, **arguments}, part.extras))
        return
    if not executed:
        executed.append({"type": part.name})
    executed[-1].update(part.content if is_object(part.content) else {"output": part.content})
