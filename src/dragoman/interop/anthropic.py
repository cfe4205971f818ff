"""The anthropic library: messages, content blocks, and the system prompt."""

from __future__ import annotations

from typing import Any

from dragoman.interop.exported import Conversation, Exported, conversation_of, facts_of, wire_export
from dragoman.interop.incoming import read_all, read_system
from dragoman.model.collection import Messages

_NAME = "anthropic"


def from_anthropic(messages: Any, *, system: Any = None) -> Messages:
    """Convert one or several messages of the anthropic library, as objects or dicts.

    Accepts returned `Message` objects and the dicts of a request, with blocks as objects or
    dicts. `system` becomes the first message.
    """
    instructions = read_system(system, "system", _NAME)
    return read_all(messages, _NAME, system=instructions, message_in=_message_in)


def _message_in(response: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": response.get("content")}


def to_anthropic(messages: Conversation, *, strict: bool = False) -> Exported:
    """Convert messages to the arguments of `messages.create(messages=…, system=…)`.

    >>> from dragoman import Message
    >>> exported = to_anthropic([Message.system("Be brief."), Message.user("Hi")])
    >>> exported.messages
    [{'role': 'user', 'content': 'Hi'}]

    The messages are dicts, as in the library's types; `system` is None if there are no
    instructions. `strict` raises `LossError` if something would be lost.
    """
    conversation = conversation_of(messages)
    body, losses = wire_export(conversation, _NAME)
    exported = Exported(
        body.get("messages", []),
        system=body.get("system"),
        losses=losses,
        omitted=facts_of(conversation),
    )
    return exported.or_raise() if strict else exported
