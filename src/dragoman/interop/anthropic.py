"""The anthropic library: messages, their blocks, and the system prompt beside them."""

from __future__ import annotations

from typing import Any

from dragoman.interop.exported import Conversation, Exported, conversation_of, facts_of, wire_export
from dragoman.interop.incoming import read_all, read_system
from dragoman.model.collection import Messages

_NAME = "anthropic"


def from_anthropic(messages: Any, *, system: Any = None) -> Messages:
    """Messages from the anthropic library's objects and dicts, one or many.

    Takes `Message`s as they are returned, the dicts that a request is made of, with blocks as
    objects or dicts, and the `system` beside them, which becomes the first message.
    """
    instructions = read_system(system, "system", _NAME)
    return read_all(messages, _NAME, system=instructions, message_in=_message_in)


def _message_in(response: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": response.get("content")}


def to_anthropic(messages: Conversation, *, strict: bool = False) -> Exported:
    """What `messages.create(messages=…, system=…)` takes.

    >>> from dragoman import Message
    >>> exported = to_anthropic([Message.system("Be brief."), Message.user("Hi")])
    >>> exported.messages
    [{'role': 'user', 'content': 'Hi'}]

    These are dicts, as the library types them; `system` is None where there are no instructions.
    `strict` raises `LossError` where something has no place there.
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
