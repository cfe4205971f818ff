"""Conversations as people have them: lists of dicts in any dialect, request bodies, documents.

Dicts are read by the dialect that wrote them, or as one of the shapes of `Message.from_dict`. What
is no conversation is refused by its type; nothing is taken by its text unless it is a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, NoReturn, TypeGuard

from dragoman.agent.results import Result
from dragoman.errors import InvalidInputError, WireError
from dragoman.model.collection import Messages, ProvidesMessages
from dragoman.model.content import is_content
from dragoman.model.frozen import MAX_DEPTH
from dragoman.model.jsontext import JsonText, dumps, loads
from dragoman.model.messages import Message, ProvidesMessage
from dragoman.model.parts import Part
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.wire.dialect import Dialect, dialect
from dragoman.wire.recognition import (
    dialect_of_history,
    has_typed_parts,
    is_canonical,
    is_message,
    is_response,
    read_canonical,
)
from dragoman.wire.translation import detect

_KINDS = (
    "messages, dicts of any dialect, a request, a document of ours, a ConversationHistory or a"
    " ChatHistory"
)
_A_RESPONSE = "a response is no history; give the messages that led to it, and its own"
_ELSEWHERE = "docs/howto-import-history.md reads what other libraries write"
_DOCUMENT = re.compile(r'\s*\{\s*"dragoman"\s*:')
_WITHOUT_IDS = frozenset({"gemini", "ollama"})  # where a result need not name its call (W81, W103)
_SPELLED_OTHERWISE = frozenset({"openai-chat", "ollama"})  # our shapes are variations of theirs

# What only our own shapes have: fields of a message, and kinds of content. Three kinds Anthropic
# has as well, with a field that ours lack.
_FIELDS = frozenset({"id", "metadata", "_metadata", "extras", "created_at", "createdAt",
                     "toolCalls", "toolCallId", "toolName", "functionCall", "isError",
                     "is_error"})  # fmt: skip
_PARTS = frozenset({"tool_call", "server_tool_call", "server_tool_result", "opaque", "audio",
                    "video"})  # fmt: skip
_THEIRS = {"thinking": "thinking", "tool_result": "tool_use_id", "image": "source"}
_DEEPEST = 2 * MAX_DEPTH  # of a request; what is in it may nest half as deep
_CHAT_ROLES = ("system", "developer", "user", "assistant", "tool", "function")


def messages_from(history: Any) -> Messages:
    """The messages in whatever holds some; raises where nothing of the kind was given."""
    if isinstance(history, (str, bytes, bytearray, memoryview)):
        return _read_text(history if isinstance(history, str) else bytes(history))
    if isinstance(history, Mapping):
        return _read_object(_plain(history))
    if isinstance(history, Request):
        return _with_system(history)
    if isinstance(history, (type, Response)):  # a class has the methods of its instances
        _refuse(history)
    if isinstance(history, (ProvidesMessages, Message, ProvidesMessage, Part)):
        return Messages.from_any(history)
    return _read_items(list(history) if isinstance(history, Iterable) else _refuse(history))


def _refuse(value: Any) -> NoReturn:
    """Raise for what is no history, by its type."""
    is_class = isinstance(value, type)
    kind = f"the class {value.__name__}" if is_class else type(value).__name__
    hint = "; its `messages` are one" if isinstance(value, Result) else ""
    msg = f"a history is {_KINDS}, not {kind}{hint}"
    raise InvalidInputError(msg)


# --- one object


def _read_text(raw: JsonText) -> Messages:
    """The conversation in a document or other JSON; what a `str` says otherwise, a user says."""
    if isinstance(raw, str) and not _DOCUMENT.match(raw):
        return Messages.from_text(raw)
    wire = loads(raw)
    if isinstance(wire, dict):
        return _conversation(wire, raw) if is_canonical(wire) else _read_object(wire)
    if isinstance(wire, list):
        return _read_items(wire)
    msg = "the JSON of a history is an object, or an array of messages"
    raise InvalidInputError(msg)


def _conversation(wire: Mapping[str, Any], raw: JsonText) -> Messages:
    """The messages in a document of ours."""
    read = read_canonical(wire["kind"], raw)
    if isinstance(read, Response):
        raise InvalidInputError(_A_RESPONSE)
    return _with_system(read) if isinstance(read, Request) else read


def _read_object(wire: dict[str, Any]) -> Messages:
    """The messages in a document, one message, or a whole request."""
    if is_canonical(wire):
        return _conversation(wire, dumps(wire))
    if is_message(wire) or (Message.is_message(wire) and not is_response(wire, "")):
        return _read_items([wire])
    spoken = dialect(detect(wire))
    if is_response(wire, spoken.messages_field):
        raise InvalidInputError(_A_RESPONSE)
    return _with_system(_decoded(spoken, wire))


def _with_system(request: Request) -> Messages:
    """The messages of a request, its instructions first."""
    if not request.system:
        return Messages.wrapping(request.messages)
    return Messages.wrapping((Message(Role.SYSTEM, request.system), *request.messages))


def _decoded(spoken: Dialect, body: dict[str, Any]) -> Request:
    try:
        return spoken.decode_request(body)
    except WireError as error:
        problem = str(error)
    # Nobody sent this: it is the caller's to put right.
    msg = f"the history can't be read as {spoken.name}: {problem}"
    raise InvalidInputError(msg)


# --- several


def _read_items(items: list[Any]) -> Messages:
    """Messages, texts and dicts of one dialect, in any mixture."""
    if all(type(item) is Message for item in items):
        return Messages.wrapping(items)
    given = [_plain(item) if isinstance(item, Mapping) else item for item in items]
    dicts = [item for item in given if isinstance(item, dict)]
    name = _dialect_of(dicts) if dicts else None
    if name is None:
        return Messages.wrapping(_message(item) for item in given)
    messages = [message for run in _runs(given) for message in _read_run(run, dialect(name))]
    if name in _WITHOUT_IDS and len(dicts) < len(given):
        messages = _paired(messages)
    return Messages.wrapping(messages)


def _runs(items: Iterable[Any]) -> Iterable[list[Any]]:
    """Neighbours that are all dicts, or none."""
    return (list(run) for _, run in groupby(items, lambda item: isinstance(item, dict)))


def _read_run(items: list[Any], spoken: Dialect) -> Iterable[Message]:
    if not isinstance(items[0], dict):
        return map(_message, items)
    return _with_system(_decoded(spoken, {spoken.messages_field: items}))


def _message(item: Any) -> Message:
    """One of several that are not of a dialect."""
    is_known = isinstance(item, (Message, ProvidesMessage, str, Part, Mapping))
    if isinstance(item, type) or not (is_known or _is_content(item)):
        msg = f"a message of a history can't be made from {type(item).__name__}; {_ELSEWHERE}"
        raise InvalidInputError(msg)
    if _is_pair(item):
        return Message.from_any({"role": item[0], "content": item[1]})
    try:
        return Message.from_any(item)
    except InvalidInputError:
        if not isinstance(item, Mapping) or "role" in item:
            raise
    msg = f"a message of a history has no role, and is no part of one either; {_ELSEWHERE}"
    raise InvalidInputError(msg)


def _is_pair(item: Any) -> TypeGuard[tuple[str, str]]:
    """Whether this is a role and a text, as LangChain takes them: `("human", "Hi")`."""
    if not (isinstance(item, tuple) and [type(piece) for piece in item] == [str, str]):
        return False
    with suppress(InvalidInputError):
        return bool(Role.parse(item[0]))
    return False


def _is_content(item: Any) -> bool:
    return isinstance(item, (list, tuple)) and bool(item) and is_content(item)


def _plain(value: Any, around: tuple[int, ...] = ()) -> Any:
    """Mappings of any kind as dicts and sequences as lists, which is what is looked for."""
    if not isinstance(value, (Mapping, list, tuple)):
        return value
    if id(value) in around or len(around) > _DEEPEST:
        msg = "the history holds itself, or nests too deeply"
        raise InvalidInputError(msg)
    inside = (*around, id(value))
    if isinstance(value, Mapping):
        return {key: _plain(item, inside) for key, item in value.items()}
    return [_plain(item, inside) for item in value]


# --- which dialect


def _dialect_of(items: list[dict[str, Any]]) -> str | None:
    """The dialect that a list of dicts is in; None where they have one of our own shapes."""
    if any(has_typed_parts(item) or {"parts", "id"} <= item.keys() for item in items):
        return None
    name = dialect_of_history(items)
    if any(map(_has_own_content, items)):
        return None
    if name in _SPELLED_OTHERWISE and any(map(_has_own_fields, items)):
        return None
    is_chat = name == "openai-chat"
    if is_chat and any(item.get("role") not in _CHAT_ROLES for item in items):
        return None  # by another name, or none: `Message.from_dict` knows some
    return name


def _has_own_content(item: dict[str, Any]) -> bool:
    content = item.get("content")
    if not isinstance(content, list):
        return isinstance(content, (Part, dict))
    return any(isinstance(part, (str, Part)) or _is_own_part(part) for part in content)


def _is_own_part(part: Any) -> bool:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str):
        return False
    return kind in _PARTS or (kind in _THEIRS and _THEIRS[kind] not in part)


def _has_own_fields(item: dict[str, Any]) -> bool:
    calls = item.get("tool_calls")
    flat = isinstance(calls, list) and any(map(_is_flat, calls))
    return flat or not _FIELDS.isdisjoint(item)


def _is_flat(call: Any) -> bool:
    return isinstance(call, ToolCall) or (isinstance(call, dict) and "name" in call)


# --- which call


def _paired(messages: Sequence[Message]) -> list[Message]:
    """With results that name no call given to the calls of the round before, by name and order.

    Each run of dicts was read for itself: a call before it, in a message of ours, was not seen.
    """
    waiting: dict[str, ToolCall] = {}
    known: set[str] = set()
    paired: list[Message] = []
    for message in messages:
        if message.tool_calls:
            waiting = {call.id: call for call in message.tool_calls}
            known |= waiting.keys()
        elif message.tool_results:
            message = _answering(message, waiting, known)  # noqa: PLW2901 - the same, with its calls
        paired.append(message)
    return paired


def _answering(message: Message, waiting: dict[str, ToolCall], known: set[str]) -> Message:
    parts = [
        _answer(part, waiting, known) if isinstance(part, ToolResult) else part
        for part in message.parts
    ]
    return message.replace(parts=tuple(parts))


def _answer(result: ToolResult, waiting: dict[str, ToolCall], known: set[str]) -> ToolResult:
    if result.call_id in known:
        waiting.pop(result.call_id, None)
        return result
    name = result.tool_name
    called = next((call for call in waiting.values() if name in (None, call.name)), None)
    if called is None:
        return result
    del waiting[called.id]
    return result.replace(call_id=called.id)
