"""Message dicts in the shapes people have: OpenAI's, the seeds', and the canonical form.

Reading takes them all at once, as they differ in spelling only: tool calls nested under
`function` or flat, snake_case or camelCase, `metadata` or `_metadata`. Fields that nobody knows
are kept as extras. Writing makes one of three:

- `openai`: `{id, role, content, tool_calls: [{id, type, function: {name, arguments}}], …}`
- `content`: `{role, name, content, _metadata}`, content as plain text where it is that
- `flat`: `{role, content, tool_calls: [{id, name, arguments: {…}}], tool_call_id}`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from dragoman.errors import InvalidInputError
from dragoman.model.content import AnyPart, part_to_dict, parts_from
from dragoman.model.derived_ids import Identity, derived_call_id
from dragoman.model.frozen import EMPTY, thaw
from dragoman.model.parts import Refusal, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult, make_call, make_result
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

_CALL_FIELDS = frozenset({"name", "arguments", "input"})


def read(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the message that a dict of any shape but the canonical describes."""
    fields: dict[str, Any] = {}
    for key, value in data.items():
        # The proper spelling wins over the other, whichever comes first.
        if key in _SNAKE and _SNAKE[key] in data:
            continue
        fields[_SNAKE.get(key, key)] = value
    role = Role.parse(fields.get("role") or Role.USER)
    parts = _tool_parts(fields) if role is Role.TOOL else _spoken_parts(fields)
    return {
        "role": role,
        "parts": parts,
        "extras": _extras(fields),
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


def _extras(fields: dict[str, Any]) -> Mapping[str, Any]:
    given = fields.get("extras") or EMPTY  # PHP writes an empty object as an empty list
    expect(given, Mapping, "the extras of a message")
    unknown = {key: value for key, value in fields.items() if key not in _KNOWN}
    # Extras are keyed by dialect; those of seed 000 are not, and belong to no dialect.
    unknown |= {key: value for key, value in given.items() if not isinstance(value, Mapping)}
    kept = {key: value for key, value in given.items() if key not in unknown}
    if not unknown:
        return kept
    return {**kept, "canonical": {**kept.get("canonical", EMPTY), **unknown}}


def _spoken_parts(fields: dict[str, Any]) -> tuple[AnyPart, ...]:
    parts = [*parts_from(fields.get("content"))]
    if isinstance(reasoning := fields.get("reasoning_content"), str) and reasoning:
        parts.insert(0, Thinking(reasoning))
    if isinstance(refusal := fields.get("refusal"), str) and refusal:
        parts.append(Refusal(refusal))
    calls = fields.get("tool_calls") or ()
    expect(calls, (list, tuple), "the tool_calls of a message")
    if (legacy := fields.get("function_call")) is not None:
        expect(legacy, Mapping, "the function_call of a message")
        calls = [*calls, {"function": legacy}]
    message_id = fields.get("id")
    identity = Identity("message", message_id if isinstance(message_id, str) else None)
    parts += [_read_call(call, identity, number) for number, call in enumerate(calls)]
    return tuple(parts)


def _read_call(call: Any, identity: Identity, number: int) -> ToolCall:
    """A tool call from a dict: nested under `function` or `custom`, or flat."""
    if isinstance(call, ToolCall):
        return call
    expect(call, Mapping, "a tool call")
    kind: Literal["function", "custom"] = "custom" if call.get("type") == "custom" else "function"
    nested = call.get(kind)
    inner: Mapping[str, Any] = nested if isinstance(nested, Mapping) else call
    name: Any = inner.get("name")
    expect(name, str, "the name of a tool call")
    extras = _call_extras(call, kind, inner)
    arguments = inner.get("input" if kind == "custom" else "arguments")
    id_ = call.get("id") or derived_call_id(identity, (0, number), (name, arguments))
    expect(id_, str, "the id of a tool call")
    if isinstance(arguments, str) or kind == "custom":
        expect(arguments, str, "the input of a custom tool call")
        return make_call(id_, name, raw=arguments, kind=kind, extras=extras)
    if arguments in (None, []):  # as above
        arguments = EMPTY
    expect(arguments, Mapping, "the arguments of a tool call")
    return make_call(id_, name, input=arguments, extras=extras)


def _call_extras(call: Mapping[str, Any], kind: str, inner: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a tool call holds that nobody knows, such as a signature some server put there."""
    known = {"id", "type", kind}
    if inner is call:
        known |= _CALL_FIELDS
    unknown = {key: value for key, value in call.items() if key not in known}
    if inner is not call:
        within = {key: value for key, value in inner.items() if key not in _CALL_FIELDS}
        unknown |= {kind: within} if within else {}
    return {"canonical": unknown} if unknown else EMPTY


def _tool_parts(fields: dict[str, Any]) -> tuple[AnyPart, ...]:
    content = fields.get("content")
    if isinstance(content, (list, tuple)) and content and all(_is_result(item) for item in content):
        return tuple(parts_from(content))  # results already: the canonical parts
    call_id, name = fields.get("tool_call_id"), fields.get("tool_name")
    if isinstance(content, Mapping) and "tool_call_id" in content:
        # LarAgent's stored form: the content is an object that knows its call.
        call_id, name = call_id or content["tool_call_id"], name or content.get("tool_name")
        content = content.get("content")
    expect(call_id, str, "the tool_call_id of a tool message")
    if not call_id:
        msg = "a tool message needs the tool_call_id of the call it answers"
        raise InvalidInputError(msg)
    if content is None:
        msg = "a tool message needs content; the empty text will do"
        raise InvalidInputError(msg)
    body = content if isinstance(content, str) else parts_from(content)
    # `function` messages of old have the tool's name where others have the speaker's.
    name = name or fields.pop("name", None)
    result = make_result(call_id, body, tool_name=name, is_error=fields.get("is_error"))  # type: ignore[arg-type]  # checked now
    result.check()
    return (result,)


def _is_result(item: Any) -> bool:
    return isinstance(item, ToolResult) or (
        isinstance(item, Mapping) and item.get("type") == "tool_result"
    )


# --- writing


def write(message: Any, shape: Shape) -> dict[str, Any]:
    """A message in one of the shapes, without metadata; raises where the shape can't say it all."""
    tool_fields = _tool_fields(message) if message.role is Role.TOOL else {}
    calls = [_write_call(call, flat=shape == "flat") for call in message.tool_calls]
    content = tool_fields.pop("content", None) if tool_fields else _content(message, shape)
    written: dict[str, Any] = {"role": message.role.value}
    if shape == "openai":
        written = {"id": message.id, **written}
    if message.name:
        written["name"] = message.name
    if content is not None or shape != "flat":
        written["content"] = content
    written |= tool_fields
    if calls:
        written["tool_calls"] = calls
    if shape == "openai" and message.extras:
        written["extras"] = thaw(message.extras)
    return written


def _content(message: Any, shape: Shape) -> Any:
    parts = [part for part in message.parts if not isinstance(part, ToolCall)]
    if not parts:
        return None if message.tool_calls else ""
    plain = [part for part in parts if isinstance(part, Text) and not _has_more(part)]
    if len(plain) == len(parts) and (len(parts) == 1 or shape == "flat"):
        return message.text
    return [part_to_dict(part) for part in parts]


def _has_more(part: Text) -> bool:
    return bool(part.citations) or "canonical" in part.extras


def _tool_fields(message: Any) -> dict[str, Any]:
    if len(message.parts) != 1 or not isinstance(message.parts[0], ToolResult):
        msg = "this shape holds one tool result a message; split them first (split_results)"
        raise InvalidInputError(msg)
    result = message.parts[0]
    fields: dict[str, Any] = {
        "content": result.text if _is_text(result) else [part_to_dict(p) for p in result.parts],
        "tool_call_id": result.call_id,
    }
    if result.tool_name:
        fields["tool_name"] = result.tool_name
    if result.is_error:
        fields["is_error"] = True
    return fields


def _is_text(result: ToolResult) -> bool:
    return isinstance(result.content, str) or all(isinstance(p, Text) for p in result.content)


def _write_call(call: ToolCall, *, flat: bool) -> dict[str, Any]:
    unknown = thaw(call.extras.get("canonical", EMPTY))
    if call.kind == "custom":
        inner = {"name": call.name, "input": call.raw_arguments}
    else:
        inner = {"name": call.name, "arguments": call.raw_arguments}
    if not flat:
        inner = {**unknown.pop(call.kind, {}), **inner}
        return {**unknown, "id": call.id, "type": call.kind, call.kind: inner}
    if call.kind == "custom":
        return {**unknown, "id": call.id, "type": "custom", **inner}
    return {**unknown, "id": call.id, "name": call.name, "arguments": thaw(call.arguments)}
