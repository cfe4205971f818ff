"""Reads and writes message dicts in several shapes: OpenAI's, simpler ones, and the canonical form.

Reading accepts all shapes at once, because they differ only in spelling: tool calls nested under
`function` or flat, snake_case or camelCase, `metadata` or `_metadata`. Unknown fields are kept as
extras. Writing produces one of three:

- `openai`: `{id, role, content, tool_calls: [{id, type, function: {name, arguments}}], …}`
- `content`: `{role, name, content, _metadata}`, with content as a string if it is plain text
- `flat`: `{role, content, tool_calls: [{id, name, arguments: {…}}], tool_call_id}`

All shapes can hold what an agent produces: thinking goes into `reasoning_content`, a result's JSON
into `data`, and parts without a form in the shape are written in their canonical form. A tool
message without a result is written as the canonical dict.

`extras` holds the message's canonical extras, flat. Those of dialects are in `dialect_extras`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import UNSET

from dragoman.errors import InvalidInputError
from dragoman.model.call_shapes import read_call, write_call
from dragoman.model.content import AnyPart, part_to_dict, parts_from
from dragoman.model.derived_ids import Identity
from dragoman.model.frozen import EMPTY, thaw
from dragoman.model.jsontext import dumps
from dragoman.model.parts import Part, Refusal, Text, Thinking, own_extras
from dragoman.model.reasoning_fields import read_thinking, write_thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolResult, make_result
from dragoman.model.value import expect

Shape = Literal["canonical", "openai", "content", "flat"]
SHAPES = ("canonical", "openai", "content", "flat")

_SNAKE = {
    "toolCalls": "tool_calls",
    "toolCallId": "tool_call_id",
    "toolName": "tool_name",
    "functionCall": "function_call",
    "isError": "is_error",
    "createdAt": "created_at",
    "_metadata": "metadata",
}
_KNOWN = frozenset(
    {"role", "content", "name", "id", "metadata", "extras", "tool_calls", "tool_call_id",
     "tool_name", "is_error", "function_call", "refusal", "created_at", "reasoning_content"}
)  # fmt: skip
_CANONICAL = "canonical"
_DIALECTS = "dialect_extras"


def read(data: Mapping[str, Any]) -> dict[str, Any]:
    """Reads the fields of a message from a dict in any shape but the canonical."""
    fields: dict[str, Any] = {}
    for key, value in data.items():
        # The snake_case spelling wins over the other, whichever comes first.
        if key in _SNAKE and _SNAKE[key] in data:
            continue
        fields[_SNAKE.get(key, key)] = value
    role = Role.parse(fields.get("role") or Role.USER)
    # Both functions remove fields that they have read in full, so that these don't become extras.
    parts = _tool_parts(fields) if role is Role.TOOL else _spoken_parts(fields)
    return {
        "role": role,
        "parts": parts,
        "extras": _read_extras(fields),
        **_optional(fields, "name", str),
        **_optional(fields, "id", str),
        **_optional(fields, "metadata", Mapping),
        **_optional(fields, "created_at", (int, float)),
    }


def _optional(fields: dict[str, Any], key: str, kind: Any) -> dict[str, Any]:
    value = fields.get(key)
    if value is None or value in ("", [], {}):
        return {}
    expect(value, kind, f"the {key} of a message")
    return {key: value}


def _read_extras(fields: dict[str, Any]) -> Mapping[str, Any]:
    given = fields.get("extras") or EMPTY  # PHP writes an empty object as an empty list
    expect(given, Mapping, "the extras of a message")
    # Flat, unless there is an entry `canonical`: then they are keyed by dialect.
    kept = _keyed(given) if isinstance(given.get(_CANONICAL), Mapping) else {_CANONICAL: given}
    unknown = {key: value for key, value in fields.items() if key not in _KNOWN}
    if _is_by_dialect(unknown.get(_DIALECTS)):
        kept = {**unknown.pop(_DIALECTS), **kept}
    own = {**own_extras(kept), **unknown}
    others = {name: of_dialect for name, of_dialect in kept.items() if name != _CANONICAL}
    return {**others, _CANONICAL: own} if own else others


def _keyed(extras: Mapping[str, Any]) -> Mapping[str, Any]:
    """Extras keyed by dialect; entries that are not objects become canonical extras."""
    loose = {key: value for key, value in extras.items() if not isinstance(value, Mapping)}
    if not loose:
        return extras
    others = {key: value for key, value in extras.items() if key not in loose}
    return {**others, _CANONICAL: {**own_extras(others), **loose}}


def _is_by_dialect(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and _CANONICAL not in value
        and all(isinstance(fields, Mapping) for fields in value.values())
    )


def _spoken_parts(fields: dict[str, Any]) -> tuple[AnyPart, ...]:
    parts: list[AnyPart] = [*read_thinking(fields), *parts_from(fields.get("content"))]
    if isinstance(refusal := fields.get("refusal"), str) and refusal:
        parts.append(Refusal(refusal))
    calls = fields.get("tool_calls") or ()
    expect(calls, (list, tuple), "the tool_calls of a message")
    if (legacy := fields.get("function_call")) is not None:
        expect(legacy, Mapping, "the function_call of a message")
        calls = [*calls, {"function": legacy}]
    message_id = fields.get("id")
    identity = Identity("message", message_id if isinstance(message_id, str) else None)
    parts += [read_call(call, identity, number) for number, call in enumerate(calls)]
    return tuple(parts)


def _tool_parts(fields: dict[str, Any]) -> tuple[AnyPart, ...]:
    content = fields.get("content")
    if isinstance(content, (list, tuple)) and content and all(_is_result(item) for item in content):
        return tuple(parts_from(content))  # already results in canonical form
    call_id, name = fields.get("tool_call_id"), fields.get("tool_name")
    if isinstance(content, Mapping) and "tool_call_id" in content:
        # LarAgent's stored form: the content is an object that includes the call id.
        call_id, name = call_id or content["tool_call_id"], name or content.get("tool_name")
        content = content.get("content")
    expect(call_id, str, "the tool_call_id of a tool message")
    if not call_id:
        msg = "a tool message needs a tool_call_id"
        raise InvalidInputError(msg)
    if content is None:
        msg = "a tool message needs content; an empty string is allowed"
        raise InvalidInputError(msg)
    body = content if isinstance(content, str) else parts_from(content)
    # Legacy `function` messages have the tool's name in `name`.
    name = name or fields.pop("name", None)
    data = UNSET
    if "data" in fields and body == _json_text(fields["data"]):
        body, data = "", fields.pop("data")
    result = make_result(call_id, body, data, tool_name=name, is_error=fields.get("is_error"))  # type: ignore[arg-type]  # checked now
    result.check()
    return (result,)


def _json_text(data: Any) -> str | None:
    try:
        return dumps(data).decode("utf-8")
    except InvalidInputError:
        return None  # not JSON, so not written by us


def _is_result(item: Any) -> bool:
    return isinstance(item, ToolResult) or (
        isinstance(item, Mapping) and item.get("type") == "tool_result"
    )


# --- writing


def write(message: Any, shape: Shape) -> dict[str, Any] | None:
    """Writes a message in a shape, without metadata; returns `None` if only canonical can hold it.

    Raises if the message needs several messages in that shape.
    """
    is_tool = message.role is Role.TOOL
    if message.tool_results and len(message.parts) > is_tool:
        msg = "this shape allows one tool result per message; use Messages.to_list or split_results"
        raise InvalidInputError(msg)
    if is_tool and not _is_answer(message):
        return None
    calls = [write_call(call, flat=shape == "flat") for call in message.tool_calls]
    fields = _tool_fields(message.parts[0], shape) if is_tool else _spoken_fields(message, shape)
    written: dict[str, Any] = {"role": message.role.value}
    if shape == "openai":
        written = {"id": message.id, **written}
    if message.name:
        written["name"] = message.name
    # OpenAI's content is optional next to calls; omit it if there is none.
    if fields["content"] is None and (shape == "flat" or (calls and shape == "openai")):
        del fields["content"]
    written |= fields
    if calls:
        written["tool_calls"] = calls
    return written | _write_extras(message.extras) if shape == "openai" else written


def _write_extras(extras: Mapping[str, Any]) -> dict[str, Any]:
    own, written = thaw(own_extras(extras)), dict[str, Any]()
    others = {name: thaw(fields) for name, fields in extras.items() if name != _CANONICAL}
    if own:
        written["extras"] = {_CANONICAL: own} if _CANONICAL in own else own
    if others:
        written[_DIALECTS] = others
    return written


def _spoken_fields(message: Any, shape: Shape) -> dict[str, Any]:
    thinking = [part for part in message.parts if isinstance(part, Thinking)]
    parts = message.content_parts
    nothing = None if message.parts else ""
    content = _content(parts, message.text, shape) if parts else nothing
    return {"content": content, **write_thinking(thinking)}


def _content(parts: Sequence[Part], text: str, shape: Shape) -> str | list[dict[str, Any]]:
    is_plain = all(isinstance(part, Text) and not _has_more(part) for part in parts)
    if is_plain and (len(parts) == 1 or (parts and shape == "flat")):
        return text
    return [part_to_dict(part) for part in parts]


def _has_more(part: Text) -> bool:
    return bool(part.citations or own_extras(part.extras))


def _is_answer(message: Any) -> bool:
    """Whether a tool message has a result, and no `name` that could be mistaken for the tool's."""
    return bool(message.tool_call_id) and not message.name


def _tool_fields(result: ToolResult, shape: Shape) -> dict[str, Any]:
    content, text = result.content, result.text
    fields: dict[str, Any] = {
        "content": text if isinstance(content, str) else _content(content, text, shape),
        "tool_call_id": result.call_id,
    }
    if result.tool_name:
        fields["tool_name"] = result.tool_name
    if result.is_error:
        fields["is_error"] = True
    if result.data is not UNSET:
        fields["data"] = thaw(result.data)
    return fields
