"""What is sent to the model: `ModelRequest`, which holds what we have as several messages.

A run of system prompts is one message, each user prompt is one, and the results of a round are
one. The first of a request's messages keeps the request's own fields, the others that they belong
to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY, thaw
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Opaque, Text
from dragoman.model.roles import Role
from dragoman.model.tools import ToolResult, make_result
from dragoman.wire.overlay import overlay
from dragoman.wire.peers.keeping import Writing
from dragoman.wire.peers.pydantic_ai.content import (
    decode_content,
    decode_result_content,
    encode_content,
    encode_item,
    encode_result_content,
)
from dragoman.wire.peers.pydantic_ai.files import digests_of, tidy
from dragoman.wire.peers.pydantic_ai.spelling import (
    KEEPER,
    NAME,
    decode_time,
    encode_time,
    fields_kept,
    mapping_at,
    significant,
    text_at,
    with_fields,
)

REQUEST = "pydantic-ai request facts"
"""Kept of a message: the fields of the request that it begins, or that it belongs to one."""
JOINED = "joined"
_EMPTY = "empty"
INSTRUCTIONS = "instructions"
_DIGESTS = "content_file_digests"
_NOTES = frozenset({JOINED, INSTRUCTIONS, _EMPTY})
_RESULTS = frozenset({"tool-return", "retry-prompt"})
Given = Mapping[str, Any]


def decode_request(given: Given) -> list[Message]:
    """The messages of a request, without its instructions; at least one."""
    messages: list[Message] = []
    for item in given.get("parts") or ():
        message = _decode_part(item if isinstance(item, Mapping) else {"value": item})
        before = messages[-1] if messages else None
        if before is not None and _is_run(before, message):
            messages[-1] = replace(before, parts=(*before.parts, *message.parts))
        else:
            messages.append(message)
    kept = significant(given, {})
    if not messages:
        messages, kept[_EMPTY] = [make_message(Role.USER)], True
    for key in ("parts", "kind", *(["metadata"] if kept.get("metadata") else [])):
        kept.pop(key, None)
    first = replace(
        messages[0],
        metadata=mapping_at(given, "metadata") or EMPTY,
        extras={**messages[0].extras, REQUEST: kept or {JOINED: False}},
    )
    others = [replace(m, extras={**m.extras, REQUEST: {JOINED: True}}) for m in messages[1:]]
    return [first, *others]


def _is_run(before: Message, message: Message) -> bool:
    """Whether both are system prompts, or results: those of a run are one message."""
    same = before.role is message.role and before.role is not Role.USER
    return same and type(before.parts[-1]) is type(message.parts[0])


def _decode_part(item: Given) -> Message:
    kind = item.get("part_kind")
    content = text_at(item, "content")
    if kind == "system-prompt" and content is not None:
        text = Text(content)
        return make_message(Role.SYSTEM, (with_fields(text, item, _system(text)),))
    if kind in _RESULTS and text_at(item, "tool_name") is not None:
        return make_message(Role.TOOL, (_decode_result(item),))
    if kind == "user-prompt":
        return _decode_prompt(item, decode_content(item.get("content")))
    if kind in {"retry-feedback", "retry-prompt"} and content is not None:
        return _decode_prompt(item, [Text(content)])
    return make_message(Role.USER, (Opaque(NAME, item),))


def _decode_prompt(item: Given, parts: list[AnyPart]) -> Message:
    message = make_message(Role.USER, tuple(parts), created_at=decode_time(item.get("timestamp")))
    given = {**item, "content": tidy(item.get("content"))}
    extras = fields_kept(given, _prompt(message, Writing()))
    return replace(message, extras=extras) if extras else message


def _decode_result(item: Given) -> ToolResult:
    outcome = item.get("outcome", "success" if item.get("part_kind") == "tool-return" else "failed")
    result = make_result(
        text_at(item, "tool_call_id") or "",
        **decode_result_content(item.get("content"), item.get(_DIGESTS)),
        tool_name=text_at(item, "tool_name"),
        is_error=outcome != "success",
    )
    given = dict(item)
    if not isinstance(result.content, str):
        given["content"] = tidy(given.get("content"))
        given.pop(_DIGESTS, None)  # of the files as they were written; ours are written anew
    return with_fields(result, given, _result(result, None, Writing()))


# --- the other way


def encode_parts(message: Message, names: Mapping[str, str], writing: Writing) -> list[Any]:
    """The parts of a request for a message; `names` are those of the tools that were called."""
    if message.name is not None:
        writing.lose_field("name", "messages have no names there")
    results: list[Any] = []
    others: list[int] = []
    for at, part in enumerate(message.parts):
        writing.part = at
        if isinstance(part, ToolResult):
            results.append(_encode_result(part, names, message, writing))
        else:
            others.append(at)
    if not others and (results or overlay(message.extras, REQUEST).get(_EMPTY)):
        return results
    if message.role.is_system:
        return results + [_encode_system(message, at, writing) for at in others]
    if all(_is_own_part(message.parts[at]) for at in others) and others:
        return results + [thaw(message.parts[at].payload) for at in others]  # type: ignore[union-attr]  # Opaque
    rest = (
        message
        if not results
        else replace(message, parts=tuple(message.parts[at] for at in others))
    )
    return [*results, KEEPER.put_back(_prompt(rest, writing), message.extras)]


def _is_own_part(part: AnyPart) -> bool:
    """Whether this is a part of a request that only pydantic-ai knows."""
    is_own = isinstance(part, Opaque) and part.dialect == NAME
    return is_own and isinstance(part.payload, Mapping) and "part_kind" in part.payload  # type: ignore[union-attr]  # Opaque


def _prompt(message: Message, writing: Writing) -> dict[str, Any]:
    content = encode_content(message.parts, message.origin, writing)
    item: dict[str, Any] = {"part_kind": "user-prompt", "content": content}
    time = None if message.created_at is None else encode_time(message.created_at)
    return item if time is None else {**item, "timestamp": time}


def _system(part: Text) -> dict[str, Any]:
    return {"part_kind": "system-prompt", "content": part.text}


def _encode_system(message: Message, at: int, writing: Writing) -> Any:
    writing.part = at
    part = message.parts[at]
    if _is_own_part(part):
        return thaw(part.payload)  # type: ignore[union-attr]  # Opaque
    if isinstance(part, Text):
        if part.cache is not None:
            writing.lose("a system prompt has no cache points there", ".cache")
        return KEEPER.put_back(_system(part), part.extras)
    items = encode_item(message.parts, at, message.origin, writing)
    texts = [item for item in items if isinstance(item, str)]
    if len(texts) < len(items):
        writing.lose("a system prompt takes text only there")
    return {"part_kind": "system-prompt", "content": "".join(texts)}


def _result(result: ToolResult, origin: Any, writing: Writing) -> dict[str, Any]:
    content = encode_result_content(result, origin, writing)
    item: dict[str, Any] = {
        "part_kind": "tool-return",
        "tool_name": result.tool_name,
        "tool_call_id": result.call_id,
        "content": content,
        "outcome": "failed" if result.is_error else "success",
    }
    if isinstance(content, (list, dict)):
        item[_DIGESTS] = [] if isinstance(result.content, str) else digests_of(content)
    return item


def _encode_result(
    result: ToolResult, names: Mapping[str, str], message: Message, writing: Writing
) -> dict[str, Any]:
    item = KEEPER.put_back(_result(result, message.origin, writing), result.extras)
    if item["tool_name"] is None:
        item["tool_name"] = names.get(result.call_id, "")
    if item["part_kind"] == "retry-prompt":  # of old, which says so by its kind alone
        item.pop("outcome", None)
        item.pop(_DIGESTS, None)
    time = None if message.created_at is None else encode_time(message.created_at)
    if "timestamp" not in item and time is not None:
        item["timestamp"] = time
    return item


def request_fields(messages: Iterable[Message], writing: Writing) -> dict[str, Any]:
    """The fields of the request that these messages make up, but for its parts."""
    body: dict[str, Any] = {"kind": "request"}
    metadata: dict[str, Any] = {}
    for message in messages:
        fields = overlay(message.extras, REQUEST)
        body.update({key: fields[key] for key in fields if key not in _NOTES})
        for key, item in message.metadata.items():
            if key in metadata and metadata[key] != item:
                writing.lose_field("metadata", "a request's messages share their metadata there")
            metadata[key] = item
    return {**body, "metadata": metadata} if metadata else body
