"""Tool results: messages of role `tool`, and of role `function` in the old form."""

from __future__ import annotations

from typing import Any

from dragoman.model.frozen import EMPTY
from dragoman.model.media import Media
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Opaque, Text
from dragoman.model.roles import Role
from dragoman.model.tools import ResultPart, ToolResult, make_result
from dragoman.wire.openai_chat.exchange import Incoming, Outgoing
from dragoman.wire.openai_chat.parts import (
    decode_parts,
    encode_content,
    encode_part,
    lose_citations,
)
from dragoman.wire.openai_chat.spelling import NAME, is_list, laid, left_over, words_of

_TOOL = Role.TOOL
_HOISTED = "(attached to the next user message)"


def decode_result(wire: dict[str, Any], incoming: Incoming) -> Message:
    """A message with the result of one call."""
    content, wire_id = wire.get("content"), wire.get("tool_call_id")
    if (
        len(wire) == 3  # noqa: PLR2004 - a role, an id and a text
        and wire["role"] == "tool"
        and (wire_id and isinstance(wire_id, str))
        and isinstance(content, str)
    ):
        return make_message(_TOOL, (make_result(incoming.calls.answer(wire_id) or "", content),))
    known, words = {"role"}, list[str]()
    has_id = isinstance(wire_id, str)
    name = wire.get("name")
    name = name if isinstance(name, str) else None
    call_id = incoming.calls.answer(wire_id if isinstance(wire_id, str) else None, name) or ""
    if has_id and call_id:
        known.add("tool_call_id")
    if isinstance(content, str) or (is_list(content) and content):
        known.add("content")
    elif "content" not in wire:
        words.append("-content")
    if name is not None:
        known.add("name")
    elif wire_id is None:
        words.append("-name")
    if wire["role"] == "function":
        words.append("function")
    elif wire_id is None:
        words.append("tool")  # also where the call was in the old form
    result = make_result(call_id, _decode_content(content, incoming), tool_name=name)
    return make_message(_TOOL, (result,), name, extras=left_over(wire, known, words))


def _decode_content(content: Any, incoming: Incoming) -> str | tuple[ResultPart, ...]:
    if isinstance(content, str):
        return content
    if not is_list(content):
        return ()
    parts: list[ResultPart] = []
    for item in content:
        for part in decode_parts([item], incoming.origin)[:1]:
            if isinstance(part, Media):
                # The wire's own results may hold media; others' may not (W1).
                parts.append(part.replace(origin=incoming.origin))
            elif isinstance(part, Text | Opaque):
                parts.append(part)
            else:
                parts.append(Opaque(NAME, item, origin=incoming.origin))
    only = parts[0] if len(parts) == 1 else None
    if type(only) is Text and only.extras is EMPTY and only.cache is None:
        return only.text  # the normal form
    return tuple(parts)


def encode_plain(result: ToolResult, out: Outgoing) -> dict[str, Any] | None:
    """The message that most results are; None where there is more to say."""
    content = result.content
    if content.__class__ is not str or not content or result.is_error:
        return None
    if result.call_id in out.wire_ids or not result.call_id:
        return None
    return {"role": "tool", "tool_call_id": result.call_id, "content": content}


def encode_result(result: ToolResult, message: Message, out: Outgoing, path: str) -> dict[str, Any]:
    """The message for a result."""
    call_id = out.wire_ids.get(result.call_id, result.call_id)
    body: dict[str, Any] = {"role": "tool"}
    if result.call_id and call_id is not None:
        body["tool_call_id"] = call_id
    content: Any = result.content
    if content.__class__ is not str or not content:
        content = _encode_content(result, message, out, path)
    if content != []:
        body["content"] = content
    if result.is_error:
        out.lose(f"{path}.is_error", "a failed call can only be told by its text here")
    name, words = message.name, words_of(message.extras)
    if "function" in words:
        body["role"] = "function"
    if result.call_id in out.legacy:
        if "tool" not in words:
            body["role"] = "function"
        if name is None and "-name" not in words:
            name = result.tool_name or ""
    if name is not None:
        body["name"] = name
    return _finished(body, message)


def _finished(body: dict[str, Any], message: Message) -> dict[str, Any]:
    """The body with what is noted of its message, and some content in any case."""
    if len(message.parts) == 1 and message.extras is not EMPTY:
        body = laid(body, message.extras)
        if "-content" in words_of(message.extras):
            return body
    body.setdefault("content", "")
    return body


def _encode_content(
    result: ToolResult, message: Message, out: Outgoing, path: str
) -> str | list[dict[str, Any]]:
    if isinstance(result.content, str):
        return result.text  # data as JSON, where there is no text
    items: list[dict[str, Any]] = []
    for index, part in enumerate(result.content):
        where = f"{path}.content[{index}]"
        found = encode_part(part, out, where, message.origin)
        if found and isinstance(part, Media) and not _may_stay(part, message, out):
            out.hoisted += found
            out.lose(where, "a tool's media are shown in a user message here (W1)")
            found = [{"type": "text", "text": _HOISTED}]
        lose_citations(part, out, where)
        items += found
    return encode_content(items)


def _may_stay(part: Media, message: Message, out: Outgoing) -> bool:
    allowed = out.target.media_in_results
    return out.sees_as_own(part, message.origin) if allowed is None else allowed
