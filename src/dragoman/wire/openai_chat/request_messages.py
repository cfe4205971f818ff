"""Messages of a request, including tool results."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.media import Media
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Opaque, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ResultPart, ToolCall, ToolResult, make_result
from dragoman.wire.call_ids import decode_calls
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.openai_chat.content import (
    decode_parts,
    encode_content,
    encode_part,
    is_bare,
    lose_citations,
)
from dragoman.wire.openai_chat.content_assistant import (
    CONTENT_FIELDS,
    NO_CONTENT,
    NULL_CONTENT,
    decode_assistant,
    encode_assistant,
)
from dragoman.wire.openai_chat.content_thinking import encode_thinking, is_lost_in_chunk
from dragoman.wire.openai_chat.dialect import NAME, ORIGIN, ChatWriting
from dragoman.wire.openai_chat.settings import message_without_refused_fields
from dragoman.wire.openai_chat.tools import encode_call
from dragoman.wire.overlay import overlay_of, with_overlay, words_of
from dragoman.wire.reading import Reading
from dragoman.wire.tolerance import Form, readable_message, with_original

# --- tool results: messages with role `tool`, or the legacy role `function`

_TOOL = Role.TOOL
_HOISTED = "(attached to the next user message)"


def decode_result(wire: dict[str, Any], reading: Reading) -> Message:
    """Decode a tool message, which holds the result of one call."""
    content, wire_id = wire.get("content"), wire.get("tool_call_id")
    # Shortcut for a role, an id and a text, as nearly all have: 2.5 times as fast.
    if (
        len(wire) == 3  # noqa: PLR2004
        and type(content) is str
        and type(wire_id) is str
        and wire_id
        and wire["role"] == "tool"
    ):
        return make_message(_TOOL, (make_result(reading.calls.answer(wire_id) or "", content),))
    known, words = {"role"}, list[str]()
    has_id = isinstance(wire_id, str)
    name = wire.get("name")
    name = name if isinstance(name, str) else None
    call_id = reading.calls.answer(wire_id if isinstance(wire_id, str) else None, name) or ""
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
        words.append("tool")  # even if the call was a legacy `function_call`
    result = make_result(call_id, _decode_content(content, reading), tool_name=name)
    is_whole = len(wire) == len(known) and not words
    extras = EMPTY if is_whole else overlay_of(wire, known, NAME, words=words)
    return make_message(_TOOL, (result,), name, extras=extras)


def _decode_content(content: Any, reading: Reading) -> str | tuple[ResultPart, ...]:
    if isinstance(content, str):
        return content
    if not is_list(content):
        return ()
    parts: list[ResultPart] = []
    for item in content:
        for part in decode_parts([item], reading.origin)[:1]:
            if isinstance(part, Media):
                # The origin lets media of this dialect stay in tool messages; others' may not (W1).
                parts.append(part.replace(origin=reading.origin))
            elif isinstance(part, Text | Opaque):
                parts.append(part)
            else:
                parts.append(Opaque(NAME, item, origin=reading.origin))
    only = parts[0] if len(parts) == 1 else None
    if type(only) is Text and only.extras is EMPTY and only.cache is None:
        return only.text  # the normal form
    return tuple(parts)


def encode_result(result: ToolResult, message: Message, writing: ChatWriting) -> dict[str, Any]:
    """Encode the tool message for a result."""
    call_id = writing.wire_ids.get(result.call_id, result.call_id)
    body: dict[str, Any] = {"role": "tool"}
    if result.call_id and call_id is not None:
        body["tool_call_id"] = call_id
    content: Any = result.content
    if content.__class__ is not str or not content:
        content = _encode_content(result, writing)
    if content != []:
        body["content"] = content
    if result.is_error:
        writing.lose_here(
            "the error flag of a result is not supported; only its text is sent", ".is_error"
        )
    name, words = message.name, words_of(message.extras, NAME)
    if "function" in words:
        body["role"] = "function"
    if result.call_id in writing.legacy:
        if "tool" not in words:
            body["role"] = "function"
        if name is None and "-name" not in words:
            name = result.tool_name or ""
    if name is not None:
        body["name"] = name
    return _finished(body, message)


def _finished(body: dict[str, Any], message: Message) -> dict[str, Any]:
    """Apply the overlay of the message, and make sure that there is content."""
    if len(message.parts) == 1 and message.extras is not EMPTY:
        body = with_overlay(body, message.extras, NAME)
        if "-content" in words_of(message.extras, NAME):
            return body
    body.setdefault("content", "")
    return body


def _encode_content(result: ToolResult, writing: ChatWriting) -> str | list[dict[str, Any]]:
    if isinstance(result.content, str):
        return result.text  # structured data as JSON if there is no text
    items: list[dict[str, Any]] = []
    for index, part in enumerate(result.content):
        writing.item = index
        found = encode_part(part, writing)
        if found and isinstance(part, Media) and not _may_stay(part, writing):
            writing.hoisted += found
            writing.lose_here("media of a tool result are moved to a user message (W1)")
            found = [{"type": "text", "text": _HOISTED}]
        lose_citations(part, writing)
        items += found
    writing.item = None
    return encode_content(items)


def _may_stay(part: Media, writing: ChatWriting) -> bool:
    allowed = writing.target.media.in_results
    return writing.is_own(part) if allowed is None else allowed


# --- messages

_ASSISTANT = Role.ASSISTANT
_SPEAKERS = {
    "user": Role.USER,
    "system": Role.SYSTEM,
    "developer": Role.DEVELOPER,
}
_ROLES = {**_SPEAKERS, "assistant": _ASSISTANT}
_PLAIN = 2  # a role and a content
_ROLE_WORDS = {role: word for word, role in _ROLES.items()}
_WORDS = frozenset({*_ROLES, "tool", "function"})
_CONTENTS = frozenset({str, list, type(None)})
FORM = Form(NAME, {word: word for word in _WORDS}, kinds=(str, list, type(None)))
"""The shape of messages in this dialect."""
_WRITTEN = {role: word for word, role in _SPEAKERS.items()}


def decode_messages(wire: list[Any]) -> tuple[Message, ...]:
    """Decode messages one to one."""
    return decode_calls(lambda calls: _decode_all(wire, Reading(ORIGIN, calls)))


def _decode_all(wire: list[Any], reading: Reading) -> tuple[Message, ...]:
    messages: list[Message] = []
    for index, item in enumerate(wire):
        # Shortcut for a role and a text, which is more than half of all messages: 3 times as fast.
        if type(item) is dict and len(item) == _PLAIN and type(item.get("content")) is str:
            word = item.get("role")
            role = _ROLES.get(word) if type(word) is str else None
            if role is not None:
                messages.append(make_message(role, (Text(item["content"]),)))
                continue
        messages.append(decode_message(item, reading, index))
    return tuple(messages)


def decode_message(wire: Any, reading: Reading, index: int) -> Message:
    """Decode a message of any kind."""
    word: Any = wire.get("role") if type(wire) is dict else None
    is_known = type(word) is str and word in _WORDS
    if not is_known or type(wire.get("content")) not in _CONTENTS:
        made, guesses = readable_message(wire, FORM)
        return with_original(decode_message(made, reading, index), NAME, guesses)
    if word in ("tool", "function"):
        return decode_result(wire, reading)
    if word == "assistant":
        reading.calls.begin_turn(index)
        return decode_assistant(wire, reading)
    return _decode_user_or_system(wire, _SPEAKERS[word], reading)


def _decode_user_or_system(wire: dict[str, Any], role: Role, reading: Reading) -> Message:
    """Decode a user, developer or system message."""
    content = wire.get("content")
    used = 2
    parts: tuple[AnyPart, ...] = ()
    if isinstance(content, str):
        parts = (Text(content),)
    elif is_list(content):
        parts = tuple(decode_parts(content, reading.origin))
    if parts and len(wire) == used:
        return make_message(role, parts)
    name = wire.get("name")
    known = {"role", "content"} if parts else {"role"}
    if isinstance(name, str):
        known.add("name")
    else:
        name = None
    words = () if "content" in wire else (NO_CONTENT,)
    return make_message(role, parts, name, extras=overlay_of(wire, known, NAME, words=words))


def encode_messages(
    system: tuple[AnyPart, ...], messages: tuple[Message, ...], writing: ChatWriting
) -> list[dict[str, Any]]:
    """Encode messages, the system prompt first."""
    written: list[dict[str, Any]] = []
    if system:
        _encode_system(system, written, writing)
    fields = writing.target.fields
    is_choosy = bool(fields.refused) or fields.in_message is not None
    for index, message in enumerate(messages):
        start = len(written)
        writing.message, writing.origin = index, message.origin
        plain = _encode_plain(message, writing)
        if plain is not None:
            if writing.hoisted and plain["role"] != "tool":
                _flush(written, writing)
            written.append(plain)
        elif message.role is _ASSISTANT:
            _flush(written, writing)
            body = encode_assistant(message, writing)
            if body.keys() != {"role"} or not message.parts:  # else none of its parts could be sent
                written.append(_with_content(body, message))
        else:
            _encode_other(message, written, writing)
        if is_choosy:
            written[start:] = [
                message_without_refused_fields(body, writing) if is_object(body) else body
                for body in written[start:]
            ]
    _flush(written, writing)
    is_joined = writing.target.turns.alternates_roles and all(map(is_object, written))
    return _with_merged_neighbours(written) if is_joined else written


def _encode_plain(message: Message, writing: ChatWriting) -> dict[str, Any] | None:
    """Encode a message of one result, or of a text, calls, or both; None if there is more to it.

    Same result as the general encoder, 3 times as fast, for nearly all messages of agents.
    """
    role, parts, extras = message.role, message.parts, message.extras
    if message.name is not None or not (extras is EMPTY or extras is NULL_CONTENT) or not parts:
        return None
    first = parts[0]
    if type(first) is ToolResult:
        is_alone = len(parts) == 1 and role is not _ASSISTANT
        return _encode_plain_result(first, writing) if is_alone else None
    if role is _TOOL:
        return None
    body: dict[str, Any] = {"role": _ROLE_WORDS[role]}
    if type(first) is Text:
        if first.signature is not None or not is_bare(first):
            return None
        body["content"] = first.text
        if len(parts) == 1:
            return body
    return body if _encode_plain_calls(message, body, writing) else None


def _encode_plain_calls(message: Message, body: dict[str, Any], writing: ChatWriting) -> bool:
    """Add the calls of a message to its body; False if there is more to it."""
    calls: list[dict[str, Any]] = []
    for call in message.parts[1:] if "content" in body else message.parts:
        if type(call) is not ToolCall or call.wire_id is not UNSET or call.signature is not None:
            return False
        calls.append(encode_call(call, writing))
    body["tool_calls"] = calls
    if message.extras is NULL_CONTENT:
        body.setdefault("content", None)
    return message.role is _ASSISTANT


def _encode_plain_result(result: ToolResult, writing: ChatWriting) -> dict[str, Any] | None:
    """Encode a result that is only a text; None if there is more to it."""
    call_id, content = result.call_id, result.content
    if type(content) is not str or not content or result.is_error:
        return None
    if not call_id or call_id in writing.wire_ids:
        return None
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def _encode_system(
    system: tuple[AnyPart, ...], written: list[dict[str, Any]], writing: ChatWriting
) -> None:
    place, writing.place = writing.place, "system[{1}]"
    content: list[Any] = []
    for writing.part, part in enumerate(system):
        content += encode_part(part, writing)
        lose_citations(part, writing)
    writing.place = place
    if content:
        written.append({"role": "system", "content": encode_content(content)})


def _with_merged_neighbours(written: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge consecutive messages of one role, since messages may have been left out (W117)."""
    done: list[dict[str, Any]] = []
    for body in written:
        before, role = done[-1] if done else {}, body.get("role")
        if role in (None, "tool") or before.get("role") != role:
            done.append(body)
        elif body.get("content"):
            content = [*_listed(before.get("content")), *_listed(body["content"])]
            done[-1] = {**body, **before, "content": content}
        else:
            done[-1] = {**body, **before}
    return done


def _listed(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return content or []


def _encode_other(message: Message, written: list[dict[str, Any]], writing: ChatWriting) -> None:
    """Encode a non-assistant message: one message for each result, then one for the rest."""
    parts, word = message.parts, _WRITTEN.get(message.role)
    only = parts[0] if len(parts) == 1 else None
    if word is not None and type(only) is Text and is_bare(only):
        _flush(written, writing)
        written.append(_with_name_and_extras({"role": word, "content": only.text}, message))
        return
    content: list[Any] = []
    for writing.part, part in enumerate(parts):
        if type(part) is ToolResult:
            written.append(encode_result(part, message, writing))
        elif word is None:
            writing.lose_part(part)
        else:
            _encode_into(part, content, writing)
    if word is None and not parts:
        writing.lose(f"messages[{writing.message}]", "a tool message without a result is left out")
    if word is not None and (content or not parts):
        _flush(written, writing)
        body: dict[str, Any] = {"role": word}
        if content:
            body["content"] = encode_content(content)
        written.append(_with_content(_with_name_and_extras(body, message), message))


def _encode_into(part: AnyPart, content: list[Any], writing: ChatWriting) -> None:
    """Add a part of a non-assistant message to the content."""
    if type(part) is Thinking and writing.is_own(part):
        encode_thinking(part, content)  # Mistral allows it in any role
        if is_lost_in_chunk(part):
            writing.lose_here("signed or encrypted thinking is not supported in this field")
        return
    content += encode_part(part, writing)
    lose_citations(part, writing)


def _with_name_and_extras(body: dict[str, Any], message: Message) -> dict[str, Any]:
    if message.name is not None:
        body["name"] = message.name
    return body if message.extras is EMPTY else with_overlay(body, message.extras, NAME)


def _with_content(body: dict[str, Any], message: Message) -> dict[str, Any]:
    """Add an empty text to a message without content, unless it was received so (W2)."""
    if not is_object(body):  # an unchanged original
        return body
    if body.keys().isdisjoint(CONTENT_FIELDS) and NO_CONTENT not in words_of(message.extras, NAME):
        body["content"] = ""
    return body


def _flush(written: list[dict[str, Any]], writing: ChatWriting) -> None:
    """Send media of tool results in a user message after all results of the turn (W1)."""
    if writing.hoisted:
        written.append({"role": "user", "content": list(writing.hoisted)})
        writing.hoisted.clear()
