"""What most assistant messages are, a text and calls and nothing else: the quick way in and out."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Text
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall
from dragoman.wire.openai_chat.calls import decode_call, encode_call
from dragoman.wire.openai_chat.exchange import Incoming, Outgoing
from dragoman.wire.openai_chat.spelling import extras_of, is_list

_ASSISTANT = Role.ASSISTANT
_NO_CONTENT = extras_of({"content": None})


def decode_plain(wire: dict[str, Any], incoming: Incoming) -> Message | None:
    """A message with a text, calls, or both; None where there is more to it."""
    if wire.get("role") != "assistant":
        return None
    content, calls, size = wire.get("content"), wire.get("tool_calls"), len(wire)
    if type(content) is str:
        if size == 2:  # noqa: PLR2004 - role and content
            return make_message(_ASSISTANT, (Text(content),))
        if size == 3 and is_list(calls) and calls:  # noqa: PLR2004 - and calls
            made = [decode_call(call, incoming) for call in calls]
            return make_message(_ASSISTANT, (Text(content), *made))
        return None
    has_null = content is None and "content" in wire
    if type(calls) is not list or not calls or size != 2 + has_null:
        return None
    made = [decode_call(call, incoming) for call in calls]
    extras = _NO_CONTENT if has_null else EMPTY
    return make_message(_ASSISTANT, tuple(made), None, "", EMPTY, extras)


def encode_plain(message: Message, out: Outgoing) -> dict[str, Any] | None:
    """The message for a text, calls, or both; None where there is more to it."""
    extras = message.extras
    if message.name is not None or (extras is not EMPTY and extras is not _NO_CONTENT):
        return None
    body: dict[str, Any] = {"role": "assistant"}
    calls: list[dict[str, Any]] = []
    for part in message.parts:
        if part.signature is not None:
            return None
        if type(part) is ToolCall and part.wire_id is UNSET:
            calls.append(encode_call(part, message.origin, out))
        elif type(part) is Text and len(body) == 1 and not calls:
            if part.extras is not EMPTY or part.citations or part.cache is not None:
                return None
            body["content"] = part.text
        else:
            return None
    if extras is _NO_CONTENT:
        body.setdefault("content", None)
    if calls:
        body["tool_calls"] = calls
    return body
