"""Conversations of pydantic-ai: alternating requests and responses.

The instructions of a request become a system message if they are new; requests that repeat them
only note that they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from dragoman.errors import InvalidInputError
from dragoman.interop.peers.kept_fields import Given, Writing, mapping_at, text_at
from dragoman.interop.peers.pydantic_ai.content import (
    KEEPER,
    NAME,
    decode_content,
    decode_result_content,
    decode_time,
    digests_of,
    encode_content,
    encode_item,
    encode_result_content,
    encode_time,
    fields_kept,
    significant,
    tidy,
    with_fields,
)
from dragoman.interop.peers.pydantic_ai.responses import decode_answer, encode_answer
from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY, thaw
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Opaque, Text
from dragoman.model.roles import Role
from dragoman.model.tools import ToolResult, make_result
from dragoman.wire.overlay import fields_of

# --- `ModelRequest`, which holds what we have as several messages
#
# Consecutive system prompts are one message, each user prompt is one, and the results of a step are
# one. The first of a request's messages keeps the request's own fields; the others note that they
# belong to it.

REQUEST = "pydantic-ai request facts"
"""Kept for a message: the fields of the request that it begins, or that it belongs to one."""
JOINED = "joined"
_EMPTY = "empty"
INSTRUCTIONS = "instructions"
_DIGESTS = "content_file_digests"
_NOTES = frozenset({JOINED, INSTRUCTIONS, _EMPTY})
_RESULTS = frozenset({"tool-return", "retry-prompt"})


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
    """Whether both are system prompts, or both results, and so form one message."""
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
        given.pop(_DIGESTS, None)  # recomputed when the files are written
    return with_fields(result, given, _result(result, None, Writing()))


# --- encoding


def encode_parts(message: Message, names: Mapping[str, str], writing: Writing) -> list[Any]:
    """The request parts for a message; `names` are those of the called tools."""
    if message.name is not None:
        writing.lose_field("name", "pydantic-ai messages have no names")
    results: list[Any] = []
    others: list[int] = []
    for at, part in enumerate(message.parts):
        writing.part = at
        if isinstance(part, ToolResult):
            results.append(_encode_result(part, names, message, writing))
        else:
            others.append(at)
    if not others and (results or fields_of(message.extras, REQUEST).get(_EMPTY)):
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
    """Whether this is a request part that only pydantic-ai has."""
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
            writing.lose("pydantic-ai system prompts have no cache points", ".cache")
        return KEEPER.put_back(_system(part), part.extras)
    items = encode_item(message.parts, at, message.origin, writing)
    texts = [item for item in items if isinstance(item, str)]
    if len(texts) < len(items):
        writing.lose("pydantic-ai system prompts can contain only text")
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
    if item["part_kind"] == "retry-prompt":  # a legacy part, whose kind implies failure
        item.pop("outcome", None)
        item.pop(_DIGESTS, None)
    time = None if message.created_at is None else encode_time(message.created_at)
    if "timestamp" not in item and time is not None:
        item["timestamp"] = time
    return item


def request_fields(messages: Iterable[Message], writing: Writing) -> dict[str, Any]:
    """The fields of the request that these messages form, except its parts."""
    body: dict[str, Any] = {"kind": "request"}
    metadata: dict[str, Any] = {}
    for message in messages:
        fields = fields_of(message.extras, REQUEST)
        body.update({key: fields[key] for key in fields if key not in _NOTES})
        for key, item in message.metadata.items():
            if key in metadata and metadata[key] != item:
                writing.lose_field("metadata", "messages of one pydantic-ai request share metadata")
            metadata[key] = item
    return {**body, "metadata": metadata} if metadata else body


# --- messages

UNREADABLE = "dragoman_unreadable"
"""In a dump: whether it had a value that JSON can't represent, such as a tool's metadata."""
_IN_FORCE = "pydantic-ai instructions facts"
"""Kept for the system message made from a request's instructions."""


def decode_messages(dumps: Iterable[Mapping[str, Any]]) -> list[Message]:
    """The messages in a dump."""
    messages: list[Message] = []
    in_force: str | None = None
    for given in dumps:
        kind = given.get("kind")
        if kind == "response":
            messages.append(decode_answer(given))
        elif kind == "request":
            decoded, in_force = _with_instructions(decode_request(given), in_force)
            messages += decoded
        else:
            msg = "the kind of a pydantic-ai message must be request or response"
            raise InvalidInputError(msg)
    return messages


def _with_instructions(
    messages: list[Message], in_force: str | None
) -> tuple[list[Message], str | None]:
    first, *others = messages
    fields = dict(fields_of(first.extras, REQUEST))
    text = fields.get(INSTRUCTIONS)
    if not isinstance(text, str):
        return messages, in_force
    fields[INSTRUCTIONS] = True
    first = replace(first, extras={**first.extras, REQUEST: fields})
    if text == in_force:
        return [first, *others], in_force
    system = make_message(Role.SYSTEM, (Text(text),), extras={_IN_FORCE: {"in_force": True}})
    return [system, first, *others], text


def encode_messages(messages: Iterable[Message], writing: Writing) -> list[dict[str, Any]]:
    """The requests and responses for messages."""
    conversation = list(messages)
    names = {call.id: call.name for message in conversation for call in message.tool_calls}
    return _Requests(names, writing).write(conversation)


class _Requests:
    """Groups messages into requests and responses."""

    def __init__(self, names: Mapping[str, str], writing: Writing) -> None:
        self._names = names
        self._writing = writing
        self._written: list[dict[str, Any]] = []
        self._open: list[Message] = []
        self._parts: list[Any] = []
        self._instructions: str | None = None

    def write(self, messages: list[Message]) -> list[dict[str, Any]]:
        for index, message in enumerate(messages):
            self._writing.message = index
            if message.role is Role.ASSISTANT:
                self._close()
                self._append(encode_answer(message, self._writing))
            elif _IN_FORCE in message.extras:
                self._close()
                self._instructions = message.text
            elif message.role is Role.TOOL and not message.parts:  # a record of started tools
                self._writing.lose_field("role", "a tool message without a result is left out")
            else:
                self._add(message)
            self._note_facts(message)
        self._close()
        return self._written

    def _add(self, message: Message) -> None:
        if self._open and not _belongs(message, self._open[-1]):
            self._close()
        self._parts += encode_parts(message, self._names, self._writing)
        self._open.append(message)

    def _close(self) -> None:
        if not self._open:
            return
        body = request_fields(self._open, self._writing)
        fields = fields_of(self._open[0].extras, REQUEST)
        if self._instructions is not None and (
            fields.get(INSTRUCTIONS) or REQUEST not in self._open[0].extras
        ):
            body[INSTRUCTIONS] = self._instructions
        self._append({**body, "parts": self._parts})
        self._open, self._parts = [], []

    def _append(self, body: dict[str, Any]) -> None:
        if body.pop(UNREADABLE, None):
            self._writing.lose_field(
                "extras", "a value in it could not be kept: JSON can't represent it"
            )
        self._written.append(thaw(body))

    def _note_facts(self, message: Message) -> None:
        if message.created_at is not None and encode_time(message.created_at) is None:
            self._writing.omit("created_at", "the time is out of range")
        if message.role is not Role.ASSISTANT:
            if message.usage is not None:
                self._writing.omit("usage", "only pydantic-ai responses have token counts")
            if message.finish is not None:
                self._writing.omit("finish", "only pydantic-ai responses have a finish reason")


def _belongs(message: Message, before: Message) -> bool:
    """Whether a message belongs to the same request as the one before it."""
    if REQUEST in message.extras:
        return bool(fields_of(message.extras, REQUEST).get(JOINED))
    return REQUEST not in before.extras
