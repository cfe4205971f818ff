"""Reads conversations exported from chat applications: ChatGPT, Claude, and ShareGPT data sets.

Such files are no API's messages: ChatGPT's hold a tree of messages, Claude's their own roles.
Fields without a place in our messages are kept as the message's `metadata`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, NamedTuple

from dragoman.errors import InvalidInputError
from dragoman.model.collection import Messages
from dragoman.model.content import AnyPart
from dragoman.model.media import File
from dragoman.model.messages import Message
from dragoman.model.parts import Opaque, Origin, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult

_MAX_ID = 128
_ROLES: Final = {
    "human": Role.USER,
    "gpt": Role.ASSISTANT,
    "chatgpt": Role.ASSISTANT,
    "bing": Role.ASSISTANT,
    "bard": Role.ASSISTANT,
    "observation": Role.TOOL,
    "function_response": Role.TOOL,
}


class ChatBranch(NamedTuple):
    """An alternative branch: messages that follow the message with the id `after`."""

    after: str | None
    """The id of a message before the branch; None if the branch starts the conversation."""
    messages: Messages
    """The messages of the branch."""


class ChatExport(NamedTuple):
    """A conversation exported from a chat application."""

    format: str
    """`chatgpt`, `claude` or `sharegpt`."""
    messages: Messages
    """The branch that the application shows."""
    id: str | None = None
    """The application's id of the conversation."""
    title: str | None = None
    """The title that the application shows."""
    branches: tuple[ChatBranch, ...] = ()
    """Earlier versions of edited questions and answers, each after the branch it leaves."""


def from_chat_export(conversation: Mapping[str, Any]) -> ChatExport:
    """Reads a conversation exported from ChatGPT or Claude, or one of a ShareGPT data set.

    >>> export = from_chat_export({"conversations": [{"from": "human", "value": "Hi"}]})
    >>> export.format, len(export.messages)
    ('sharegpt', 1)

    ChatGPT's and Claude's `conversations.json` is a list of such conversations.
    """
    given: Any = conversation
    read = _reader_of(given) if isinstance(given, Mapping) else None
    if read is None:
        msg = (
            "not a conversation exported from ChatGPT or Claude, or in ShareGPT's form; their"
            " conversations.json is a list: pass one of its items"
        )
        raise InvalidInputError(msg)
    return read(conversation)


def format_of(wire: Mapping[str, Any]) -> str | None:
    """The format of an exported conversation: `chatgpt`, `claude` or `sharegpt`."""
    return next((name for name, (fits, _) in _FORMATS.items() if fits(wire)), None)


def _reader_of(wire: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], ChatExport] | None:
    name = format_of(wire)
    return None if name is None else _FORMATS[name][1]


# --- ChatGPT: a tree of nodes


def _is_chatgpt(wire: Mapping[str, Any]) -> bool:
    mapping = wire.get("mapping")
    return isinstance(mapping, dict) and all(
        isinstance(node, dict) and ("message" in node or "parent" in node)
        for node in mapping.values()
    )


class _Tree:
    """The nodes of a conversation, each with the message in it, if any."""

    def __init__(self, wire: Mapping[str, Any]) -> None:
        self._nodes: dict[str, dict[str, Any]] = wire["mapping"]
        self._parents = {name: self._parent(node) for name, node in self._nodes.items()}
        self._children: dict[str | None, list[str]] = {}
        for name in self._nodes:  # in the order in which they were created
            self._children.setdefault(self._parents[name], []).append(name)
        self._shown = set(self._ancestors(self._current(wire)))
        self._messages: dict[str, Message | None] = {}

    def _parent(self, node: dict[str, Any]) -> str | None:
        parent = node.get("parent")
        return parent if isinstance(parent, str) and parent in self._nodes else None

    def _current(self, wire: Mapping[str, Any]) -> str | None:
        """The last node that the application shows, or the last one."""
        current = wire.get("current_node")
        if isinstance(current, str) and current in self._nodes:
            return current
        return next(reversed(self._nodes), None)

    def _ancestors(self, name: str | None) -> Iterator[str]:
        """A node and those before it; ends where a damaged tree runs in a circle."""
        seen: set[str] = set()
        while name is not None and name not in seen:
            yield name
            seen.add(name)
            name = self._parents[name]

    def branches(self) -> Iterator[ChatBranch]:
        """The branch that the application shows, then the others, each after its parent."""
        starts: list[tuple[str | None, str | None]] = [(None, None)]  # a node, and what precedes it
        unseen, names = set(self._nodes), iter(self._nodes)
        while starts:
            node, after = starts.pop(0)
            before, messages = after, list[Message]()
            rest = self._children.get(None, []) if node is None else [node]
            while rest := [name for name in rest if name in unseen]:
                name = next((each for each in rest if each in self._shown), rest[0])
                starts += [(other, before) for other in rest if other != name]
                unseen.discard(name)
                message = self._message(name)
                if message is not None:
                    messages.append(message)
                    before = message.id
                rest = self._children.get(name, [])
            if messages or node is None:
                yield ChatBranch(after, Messages.wrapping(messages))
            if not starts and (left := next((each for each in names if each in unseen), None)):
                starts.append((left, None))  # a circle, which no root leads to

    def _message(self, name: str) -> Message | None:
        wire = self._nodes[name].get("message")
        self._messages[name] = None
        if isinstance(wire, dict):
            self._messages[name] = _chatgpt_message(name, wire, self._call_before(name))
        return self._messages[name]

    def _call_before(self, name: str) -> ToolCall | None:
        """The call that a tool's message answers."""
        for ancestor in self._ancestors(self._parents[name]):
            message = self._messages.get(ancestor)
            if message is not None and message.role is not Role.TOOL:
                return message.tool_calls[-1] if message.tool_calls else None
        return None


def _read_chatgpt(wire: Mapping[str, Any]) -> ChatExport:
    shown, *others = _Tree(wire).branches()
    rest = {key: value for key, value in wire.items() if key not in ("mapping", "title")}
    return ChatExport(
        "chatgpt",
        _with_rest(shown.messages, "chatgpt", rest),
        _text(wire.get("conversation_id")) or _text(wire.get("id")),
        _text(wire.get("title")),
        tuple(others),
    )


def _chatgpt_message(name: str, wire: dict[str, Any], call: ToolCall | None) -> Message | None:
    author = wire.get("author")
    author = author if isinstance(author, dict) else {}
    role = _role(author.get("role"))
    parts = tuple(_chatgpt_parts(wire.get("content")))
    recipient = _text(wire.get("recipient")) or "all"
    if role is Role.ASSISTANT and recipient != "all":
        text = "".join(part.text for part in parts if isinstance(part, Text))
        others = tuple(part for part in parts if not isinstance(part, Text))
        parts = (*others, ToolCall.create(f"call_{name}"[:64], recipient, text, kind="custom"))
    elif role is Role.TOOL:
        parts = (_result(parts, call, _text(author.get("name"))),)
    if not parts:
        return None  # nothing was said: the root, and placeholders for instructions
    rest = {key: value for key, value in wire.items() if key != "create_time"}
    if rest.get("id") == name:
        del rest["id"]
    if _is_plain(wire.get("content")):
        del rest["content"]
    metadata = wire.get("metadata")
    model = _text(metadata.get("model_slug")) if isinstance(metadata, dict) else None
    is_made = role is Role.ASSISTANT and model is not None
    return Message(
        role,
        parts,
        id=_id(name),
        created_at=_seconds(wire.get("create_time")),
        metadata={"chatgpt": rest},
        origin=Origin(dialect="chatgpt", model=model) if is_made else None,
    )


def _is_plain(content: Any) -> bool:
    """Whether content is nothing but text."""
    if not isinstance(content, dict) or content.keys() != {"content_type", "parts"}:
        return False
    parts = content["parts"]
    return isinstance(parts, list) and all(isinstance(part, str) for part in parts)


def _chatgpt_parts(content: Any) -> Iterator[AnyPart]:
    match content:
        case {"parts": list(parts)}:
            for part in parts:
                yield from _texts(part) if isinstance(part, str) else (_pointer(part),)
        case {"content_type": "thoughts", "thoughts": list(thoughts)}:
            texts = (_joined(thought, "summary", "content") for thought in thoughts)
            yield from (Thinking(text, form="summary") for text in texts if text)
        case {"content_type": "user_editable_context"}:
            yield from _texts(_joined(content, "user_profile", "user_instructions"))
        case {"text": str(text)} | {"result": str(text)}:  # code, its output, quotes, browsed pages
            yield from _texts(text)
        case dict():
            yield Opaque("chatgpt", content)
        case _:
            return


def _texts(text: str) -> tuple[Text, ...]:
    return (Text(text),) if text else ()


def _pointer(part: Any) -> AnyPart:
    """A transcript as text; a pointer to a file of the export as it is."""
    match part:
        case {"content_type": "audio_transcription", "text": str(text)} if text:
            return Text(text)
        case _:
            return Opaque("chatgpt", part)


# --- Claude: a list of messages


def _is_claude(wire: Mapping[str, Any]) -> bool:
    messages = wire.get("chat_messages")
    return isinstance(messages, list) and all(isinstance(each, dict) for each in messages)


def _read_claude(wire: Mapping[str, Any]) -> ChatExport:
    messages: list[Message] = []
    for index, each in enumerate(wire["chat_messages"]):
        messages += _claude_messages(each, f"{index + 1}")
    rest = {key: value for key, value in wire.items() if key not in ("chat_messages", "name")}
    return ChatExport(
        "claude",
        _with_rest(Messages.wrapping(_unique(messages)), "claude", rest),
        _text(wire.get("uuid")),
        _text(wire.get("name")),
    )


def _claude_messages(wire: dict[str, Any], number: str) -> Iterator[Message]:
    """The messages in one of Claude's: its tools' results are among its own blocks."""
    role = _role(wire.get("sender"))
    name = _id(_text(wire.get("uuid")) or f"message-{number}")
    rest = {key: value for key, value in wire.items() if key not in ("uuid", "sender")}
    turns = list(_claude_turns(wire, role, name))
    for index, (whose, parts) in enumerate(turns):
        yield Message(
            whose,
            tuple(parts),
            id=name if not index else f"{name}-{index + 1}",
            created_at=_seconds(wire.get("created_at")),
            metadata={} if index else {"claude": rest},
        )


def _claude_turns(
    wire: dict[str, Any], role: Role, name: str
) -> Iterator[tuple[Role, list[AnyPart]]]:
    """The parts, with calls and results in turns, as every API has them."""
    parts: list[AnyPart] = [*_attachments(wire)]
    whose = role
    for part in _claude_parts(wire, name):
        side = Role.TOOL if isinstance(part, ToolResult) else role
        if parts and side is not whose:
            yield whose, parts
            parts = []
        whose = side
        parts.append(part)
    if parts:
        yield whose, parts


def _claude_parts(wire: dict[str, Any], name: str) -> Iterator[AnyPart]:
    content = wire.get("content")
    blocks = [block for block in content if block] if isinstance(content, list) else []
    if not blocks:
        yield from _texts(_text(wire.get("text")) or "")
        return
    call = ToolCall.create(f"call_{name}"[:64], "tool")
    for index, block in enumerate(blocks):
        match block:
            case {"type": "text", "text": str(text)}:
                yield from _texts(text)
            case {"type": "thinking", "thinking": str(text)}:
                if text:
                    yield Thinking(text)
            case {"type": "tool_use", "name": str(tool)} if tool:
                given = block.get("input")
                call = ToolCall.create(
                    _text(block.get("id")) or f"call_{index}_{name}"[:64],
                    tool,
                    given if isinstance(given, dict) else None,
                )
                yield call
            case {"type": "tool_result"}:
                yield _claude_result(block, call)
            case _:
                yield Opaque("claude", block)


def _claude_result(block: dict[str, Any], call: ToolCall) -> ToolResult:
    content = block.get("content")
    blocks = content if isinstance(content, list) else [content]
    parts = tuple(_result_part(each) for each in blocks if each)
    return ToolResult(
        _text(block.get("tool_use_id")) or call.id,
        parts,
        tool_name=_text(block.get("name")) or call.name,
        is_error=block.get("is_error") is True,
    )


def _result_part(block: Any) -> Text | Opaque:
    match block:
        case str(text) | {"type": "text", "text": str(text)}:
            return Text(text)
        case _:
            return Opaque("claude", block)


def _attachments(wire: dict[str, Any]) -> Iterator[AnyPart]:
    """The attached files: with the text that was extracted, or by name only."""
    for field in ("attachments", "files"):
        given = wire.get(field)
        for file in given if isinstance(given, list) else ():
            match file:
                case {"extracted_content": str(text)} if text:
                    data = base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()
                    name = _text(file.get("file_name"))
                    yield File(data=data, mime="text/plain", name=name)
                case _:
                    yield Opaque("claude", {"type": "file", "file": file})


# --- ShareGPT: a list of turns


def _is_sharegpt(wire: Mapping[str, Any]) -> bool:
    turns = wire.get("conversations")
    return (
        isinstance(turns, list)
        and bool(turns)
        and all(isinstance(turn, dict) and {"from", "value"} <= turn.keys() for turn in turns)
    )


def _read_sharegpt(wire: Mapping[str, Any]) -> ChatExport:
    messages: list[Message] = []
    system = _text(wire.get("system"))
    if system:
        messages.append(Message(Role.SYSTEM, (Text(system),)))
    call: ToolCall | None = None
    for index, turn in enumerate(wire["conversations"]):
        message = _sharegpt_message(turn, index, call)
        call = message.tool_calls[-1] if message.tool_calls else None
        messages.append(message)
    rest = {key: wire[key] for key in wire if key not in ("conversations", "system")}
    shown = _with_rest(Messages.wrapping(messages), "sharegpt", rest)
    return ChatExport("sharegpt", shown, _text(wire.get("id")), _text(wire.get("title")))


def _sharegpt_message(turn: dict[str, Any], index: int, call: ToolCall | None) -> Message:
    value = turn["value"]
    parts: tuple[AnyPart, ...] = (
        Text(value) if isinstance(value, str) else Opaque("sharegpt", value),
    )
    rest = {key: turn[key] for key in turn if key not in ("from", "value")}
    metadata = {"sharegpt": rest} if rest else {}
    if turn["from"] == "function_call":
        name, arguments = _function_call(value)
        made = ToolCall.create(f"call_{index + 1}", name, arguments)
        return Message(Role.ASSISTANT, (made,), metadata=metadata)
    role = _role(turn["from"])
    if role is Role.TOOL:
        parts = (_result(parts, call, None),)
    return Message(role, parts, metadata=metadata)


def _function_call(value: Any) -> tuple[str, Any]:
    """The name and arguments of a call, which is JSON in a string."""
    from dragoman.model.jsontext import loads

    try:
        wire = loads(value) if isinstance(value, str) else value
    except InvalidInputError:
        wire = None
    match wire:
        case {"name": str(name)} if name:
            arguments = wire.get("arguments")
            return name, arguments if isinstance(arguments, (dict, str)) else None
        case _:
            return "function", value if isinstance(value, str) else None


# --- all of them


def _result(parts: tuple[AnyPart, ...], call: ToolCall | None, name: str | None) -> ToolResult:
    kept = tuple(part for part in parts if isinstance(part, (Text, Opaque)))
    if call is None:
        return ToolResult("call_unknown", kept, tool_name=name)
    return ToolResult(call.id, kept, tool_name=name or call.name, kind=call.kind)


def _role(name: Any) -> Role:
    known = _ROLES.get(name) if isinstance(name, str) else None
    if known is not None:
        return known
    if not isinstance(name, str):
        msg = "a message of the export has no role"
        raise InvalidInputError(msg)
    return Role.parse(name)


def _with_rest(messages: Messages, name: str, rest: dict[str, Any]) -> Messages:
    """The messages; the first one keeps the conversation's other fields."""
    if not messages:
        return messages
    first, *others = messages
    held = dict(first.metadata.get(name) or {})
    return Messages.wrapping([first.with_metadata(name, {**held, "conversation": rest}), *others])


def _unique(messages: list[Message]) -> list[Message]:
    """The messages, with new ids for repeated ones."""
    seen: set[str] = set()
    found: list[Message] = []
    for message in messages:
        own, number = message.id, 1
        while own in seen:
            number += 1
            own = f"{message.id}-{number}"
        seen.add(own)
        found.append(message if own == message.id else message.with_id(own))
    return found


def _id(name: str) -> str:
    """The name of a message as its id."""
    if 0 < len(name) <= _MAX_ID:
        return name
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _joined(wire: Any, *fields: str) -> str:
    texts = [_text(wire.get(field)) for field in fields] if isinstance(wire, dict) else []
    return "\n\n".join(text for text in texts if text)


def _seconds(value: Any) -> float | None:
    """A time in seconds: a number, or text in ISO 8601."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return float(value)
    try:
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None


_FORMATS: Final[
    dict[str, tuple[Callable[[Mapping[str, Any]], bool], Callable[[Mapping[str, Any]], ChatExport]]]
] = {
    "chatgpt": (_is_chatgpt, _read_chatgpt),
    "claude": (_is_claude, _read_claude),
    "sharegpt": (_is_sharegpt, _read_sharegpt),
}
FORMATS = tuple(_FORMATS)
"""The names of the formats."""
