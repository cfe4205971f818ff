"""Converts the return value of a tool into a tool result.

Text stays text, media stay media, and everything else becomes JSON data: Gemini gets it as it is
(in an object, W82), the other dialects as JSON text. Media within data are appended after it: no
dialect supports them inside.
"""

from __future__ import annotations

from typing import Any

from dragoman.agent.json_values import Walk, of_bytes, whole_characters
from dragoman.agent.results import Result
from dragoman.errors import InvalidInputError
from dragoman.model.jsontext import dumps
from dragoman.model.media import Audio, File, Image, Video
from dragoman.model.parts import Opaque, Part, Refusal, Text
from dragoman.model.tools import ResultPart, ToolCall, ToolResult, make_result

__all__ = ["result_of", "whole_characters"]

_PARTS = (Text, Image, Audio, Video, File, Refusal, Opaque)


def result_of(call: ToolCall, value: Any) -> ToolResult:
    """The result of a call that returned this value.

    Accepts text, None (empty text), media and other parts, and sequences of those; a `ToolResult`,
    which gets the call's id and name; an agent's `Result`, whose output is used; bytes, by their
    content; and everything JSON can represent: mappings, sequences, sets, numbers, dataclasses,
    NamedTuples, msgspec Structs, pydantic models, enums, dates, UUIDs, decimals, paths, arrays.
    Other values give an error result, not an exception.
    """
    if type(value) is str:
        return _made(call, whole_characters(value))
    if value is None:
        return _made(call, "")
    try:
        return _converted(call, value)
    except InvalidInputError as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001 - classes of the user's may do anything when read
        reason = f"reading it raised {type(error).__name__}"
    text = (
        f"`{call.name}` ran to its end, but what it returned, a {type(value).__name__},"
        f" can't be shown: {reason}."
    )
    return make_result(call.id, text, tool_name=call.name, is_error=True, kind=call.kind)


def _made(call: ToolCall, content: str | tuple[ResultPart, ...]) -> ToolResult:
    return make_result(call.id, content, tool_name=call.name, is_error=False, kind=call.kind)


def _converted(call: ToolCall, value: Any) -> ToolResult:
    if isinstance(value, Result):
        return result_of(call, value.output)
    if isinstance(value, ToolResult):
        return _adopted(call, value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        value = of_bytes(value)
    if isinstance(value, str):
        return _made(call, whole_characters(str.__str__(value)))
    if isinstance(value, Part):
        return _made(call, (_checked(value),))
    if isinstance(value, (list, tuple)) and any(isinstance(item, Part) for item in value):
        return _made(call, tuple(part for item in value for part in _parts_of(item)))
    return _of_data(call, value)


def _adopted(call: ToolCall, result: ToolResult) -> ToolResult:
    is_error = bool(result.is_error)
    return result.replace_unchecked(
        call_id=call.id, tool_name=call.name, kind=call.kind, is_error=is_error
    )


def _of_data(call: ToolCall, value: Any) -> ToolResult:
    walk = Walk()
    data = walk.json(value)
    if walk.media:
        return _made(call, (_json_text(data), *walk.media))
    if isinstance(data, str):  # a date, an enum: without quotes
        return _made(call, data)
    return make_result(call.id, "", data, call.name, is_error=False, kind=call.kind)


def _parts_of(item: Any) -> tuple[ResultPart, ...]:
    """One item of a sequence that contains parts."""
    if item is None:
        return ()
    if isinstance(item, (bytes, bytearray, memoryview)):
        item = of_bytes(item)
    if isinstance(item, str):
        return (Text(whole_characters(str.__str__(item))),)
    if isinstance(item, Part):
        return (_checked(item),)
    walk = Walk()
    return (_json_text(walk.json(item)), *walk.media)


def _checked(part: Part) -> ResultPart:
    if not isinstance(part, _PARTS):
        msg = f"a {type(part).__name__} can't be part of a tool result"
        raise InvalidInputError(msg)
    part.check()
    return part


def _json_text(data: Any) -> Text:
    return Text(dumps(data).decode("utf-8"))
