"""LangChain's messages, in their dumped form.

One dump is one message, except for tool messages: LangChain has one message per result, while ours
may hold the results of a whole step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from dragoman.errors import InvalidInputError
from dragoman.interop.peers.kept_fields import Writing, mapping_at, text_at
from dragoman.interop.peers.langchain.assistant import (
    NATIVE,
    decode_answer,
    encode_answer,
    generated_fields,
    with_facts,
)
from dragoman.interop.peers.langchain.blocks import (
    FACTS,
    decode_content,
    decode_result_content,
    encode_content,
)
from dragoman.model.frozen import thaw
from dragoman.model.messages import Message, assigned_id, make_message
from dragoman.model.roles import Role
from dragoman.model.tools import ToolResult, make_result
from dragoman.wire.call_ids import CallIds, decode_calls
from dragoman.wire.overlay import fields_of, overlay_of

NAME = FACTS.name
UNREADABLE = "langchain unreadable"
"""Kept for a message: the paths of values that JSON can't represent, such as a tool's artifact."""
_TYPES = {
    "human": Role.USER,
    "ai": Role.ASSISTANT,
    "system": Role.SYSTEM,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}
_WORDS = {Role.USER: "human", Role.ASSISTANT: "ai", Role.TOOL: "tool"}
_CHUNK = "MessageChunk"
_OF_STREAMS = frozenset({"tool_call_chunks", "chunk_position"})
_KWARGS = "additional_kwargs"
_DEVELOPER = "__openai_role__"
_FREE_FORM = frozenset({"artifact", _KWARGS, "response_metadata"})


def decode_messages(dumps: Iterable[Mapping[str, Any]]) -> list[Message]:
    """Decode dumps in the form `{"type": …, "data": {…}}`, or the data alone."""
    listed = list(dumps)
    return decode_calls(lambda calls: [*_decode_all(listed, calls)])


def _decode_all(dumps: list[Mapping[str, Any]], calls: CallIds) -> Iterator[Message]:
    for index, dump in enumerate(dumps):
        calls.at(index)
        yield _decode_message(dump, calls)


def _decode_message(dump: Mapping[str, Any], calls: CallIds) -> Message:
    data = dump.get("data")
    given = {"type": dump.get("type"), **data} if isinstance(data, Mapping) else dict(dump)
    unreadable = given.pop(UNREADABLE, None)
    given, role = _as_message(given)
    message = _decode(given, role, calls)
    generated = _generated(message)
    kwargs = mapping_at(given, _KWARGS)
    given[_KWARGS] = {
        key: item for key, item in kwargs.items() if key not in generated or generated[key] != item
    }
    extras = dict(overlay_of(given, (), NAME, _rebuilt(message, Writing()), notes_absent=False))
    if isinstance(unreadable, list) and unreadable:
        extras[UNREADABLE] = {":paths": unreadable}
    return _with_extras(message, extras)


def _with_extras(message: Message, extras: Mapping[str, Any]) -> Message:
    """The message with its extras; a result has its own, so that results can be regrouped."""
    if not extras:
        return message
    if message.role is Role.TOOL:
        (result,) = message.tool_results
        kept = replace(result, extras={**result.extras, **extras})
        return replace(message, parts=(kept,))
    facts = {**fields_of(message.extras, NAME), **fields_of(extras, NAME)}
    merged = {**message.extras, **extras}
    return replace(message, extras={**merged, NAME: facts} if facts else merged)


def _as_message(given: dict[str, Any]) -> tuple[dict[str, Any], Role]:
    """The dump of a whole message, also from a chunk, and its role."""
    word = given.get("type")
    if isinstance(word, str) and word.endswith(_CHUNK):  # accumulated chunks represent the message
        word = word.removesuffix(_CHUNK).lower()
        given = {key: item for key, item in given.items() if key not in _OF_STREAMS}
        given["type"] = word
    if word == "remove":
        msg = "a RemoveMessage deletes another message; it can't be read as a message"
        raise InvalidInputError(msg)
    if word == "chat":
        return given, _chat_role(given)
    role = _TYPES.get(word) if isinstance(word, str) else None
    if role is None:
        msg = "the type of a LangChain message must be human, ai, system, tool, function or chat"
        raise InvalidInputError(msg)
    if role is Role.SYSTEM and mapping_at(given, _KWARGS).get(_DEVELOPER) == "developer":
        role = Role.DEVELOPER
    return given, role


def _chat_role(given: Mapping[str, Any]) -> Role:
    role = Role.parse(given.get("role", ""))
    if role is not Role.TOOL:
        return role
    msg = "a ChatMessage can't be a tool result, since it has no call id; use a ToolMessage"
    raise InvalidInputError(msg)


def _decode(given: Mapping[str, Any], role: Role, calls: CallIds) -> Message:
    fields: dict[str, Any] = {
        "name": text_at(given, "name"),
        "id": text_at(given, "id") or "",
        "metadata": mapping_at(mapping_at(given, _KWARGS), "metadata"),
    }
    if role is Role.TOOL:
        del fields["name"]  # the tool's name, which the result has
        return make_message(role, (_decode_result(given, calls),), **fields)
    if role is Role.ASSISTANT:
        return decode_answer(given, calls, fields)
    return make_message(
        role, tuple(decode_content(given.get("content"), is_answer=False)), **fields
    )


def _decode_result(given: Mapping[str, Any], calls: CallIds) -> ToolResult:
    """A tool result; a legacy function message has no call id."""
    tool, status = text_at(given, "name"), text_at(given, "status")
    call_id, _ = calls.answer_named(tool, text_at(given, "tool_call_id"))
    content = decode_result_content(given.get("content"))
    is_error = None if status is None else status == "error"
    return make_result(call_id, content, tool_name=tool, is_error=is_error)


# --- encoding


def encode_messages(messages: Iterable[Message], writing: Writing) -> list[dict[str, Any]]:
    """The dumps for messages: one per message, and one for each of several results."""
    dumps: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        writing.message = index
        for one in _split(message, writing):
            kept = one.parts[0].extras if one.role is Role.TOOL and one.parts else one.extras
            dump = FACTS.put_back(_rebuilt(one, writing), kept)
            dumps.append(thaw(_completed(dump, one, kept, writing)))
    return dumps


def _split(message: Message, writing: Writing) -> list[Message]:
    """The message, or its results one by one followed by its other content."""
    results = message.tool_results
    if message.role is Role.TOOL and not message.parts:  # an agent's record of started tools
        writing.lose_field("role", "a tool message without a result is left out")
        return []
    if not results and message.role is Role.TOOL:
        writing.lose_field("role", "a tool message without a result is written as a user message")
        return [replace(message, role=Role.USER)]
    if not results or (len(message.parts) == 1 and message.role is Role.TOOL):
        return [message]
    others = tuple(part for part in message.parts if not isinstance(part, ToolResult))
    first, *more = results
    split = [replace(message, role=Role.TOOL, parts=(first,))]
    split += [make_message(Role.TOOL, (result,)) for result in more]
    if others:
        role = Role.USER if message.role is Role.TOOL else message.role
        split.append(make_message(role, others, message.name, extras=message.extras))
    return split


def _rebuilt(message: Message, writing: Writing) -> dict[str, Any]:
    """The fields that our values determine."""
    role = message.role
    word = _WORDS.get(role, "system")
    dump: dict[str, Any] = {"type": word, "name": message.name, "id": assigned_id(message)}
    dump |= {_KWARGS: {}, "response_metadata": {}}  # their content is added at the end
    if role is Role.TOOL:
        _rebuild_result(message, dump, writing)
    elif role is Role.ASSISTANT:
        encode_answer(message, dump, writing)
    else:
        dump["content"] = encode_content(message.parts, writing.lose_at, is_answer=False)
    return dump


def _rebuild_result(message: Message, dump: dict[str, Any], writing: Writing) -> None:
    result = next(iter(message.tool_results), make_result(""))
    if isinstance(result.content, str):
        dump["content"] = result.text
    else:
        dump["content"] = encode_content(result.content, writing.lose_inside, is_answer=False)
    dump["tool_call_id"], dump["name"] = result.call_id, result.tool_name
    if message.name is not None:
        writing.lose_field("name", "a LangChain tool message has the name of the tool instead")
    if result.is_error is not None:
        dump["status"] = "error" if result.is_error else "success"


def _generated(message: Message) -> dict[str, Any]:
    """The content of `additional_kwargs` that our values determine."""
    fields: dict[str, Any] = {"metadata": thaw(message.metadata)} if message.metadata else {}
    if message.role is Role.DEVELOPER:
        fields[_DEVELOPER] = "developer"
    return {**fields, **generated_fields(message)} if message.role is Role.ASSISTANT else fields


def _as_chat(dump: dict[str, Any]) -> None:
    """Remove fields that only assistant messages have; with calls, it must become one."""
    if dump.get("tool_calls") or dump.get("invalid_tool_calls"):
        dump["type"] = "ai"
        return
    for field in ("tool_calls", "invalid_tool_calls", "usage_metadata"):
        if not dump.get(field):
            dump.pop(field, None)


def _completed(
    dump: dict[str, Any], message: Message, kept: Mapping[str, Any], writing: Writing
) -> dict[str, Any]:
    """The dump with the content of LangChain's free-form fields."""
    dump.pop(NATIVE, None)
    dump[_KWARGS] = {**_generated(message), **mapping_at(dump, _KWARGS)}
    about = dict(mapping_at(dump, "response_metadata"))
    is_answer = message.role is Role.ASSISTANT
    dump["response_metadata"] = with_facts(about, message) if is_answer else about
    if dump["type"] == "chat":
        _as_chat(dump)
    if dump["type"] != "chat":
        dump.pop("role", None)
    if dump["type"] == "function":
        dump.pop("tool_call_id", None)
        dump.pop("status", None)
    paths = fields_of(kept, UNREADABLE).get(":paths")
    texts = [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else []
    for path in texts:
        head = path.partition(".")[0].partition("[")[0]
        field = head if head in _FREE_FORM else "content"
        writing.lose_field(
            "extras", f"a value in its {field} could not be kept: JSON can't represent it"
        )
    if message.created_at is not None:
        writing.omit("created_at", "LangChain messages have no time")
    return dump
