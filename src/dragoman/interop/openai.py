"""The openai library: messages of Chat Completions, input and output items of Responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from dragoman.interop.exported import Conversation, Exported, conversation_of, facts_of, wire_export
from dragoman.interop.incoming import items_of, read_all, read_system
from dragoman.model.collection import Messages
from dragoman.wire.detection import dialect_of_history
from dragoman.wire.inputs.sdk_objects import sdk_wire

_CHAT = "openai-chat"
_RESPONSES = "openai-responses"


def from_openai(messages: Any, *, instructions: Any = None) -> Messages:
    """Messages from the openai library's objects and dicts, of either API.

    Takes messages, `ChatCompletion`s, the items of `response.output`, `Response`s and the dicts
    that a request is made of, one or many. Groq's and Mistral's objects are read as well.
    """
    name = _dialect_of(items_of(messages))
    system = read_system(instructions, "instructions", _RESPONSES)
    return read_all(messages, name, system=system)


def _dialect_of(items: list[Any]) -> str:
    known = {found[0] for item in items if (found := sdk_wire(item)) is not None}
    if _RESPONSES in known:
        return _RESPONSES
    dicts = [dict(item) for item in items if isinstance(item, Mapping)]
    is_responses = bool(dicts) and dialect_of_history(dicts) == _RESPONSES
    return _RESPONSES if is_responses and _CHAT not in known else _CHAT


def to_openai(
    messages: Conversation,
    *,
    api: Literal["chat", "responses"] = "chat",
    strict: bool = False,
) -> Exported:
    """What `chat.completions.create(messages=…)` takes, or `responses.create(input=…)`.

    >>> from dragoman import Message
    >>> to_openai([Message.user("Hi")]).messages
    [{'role': 'user', 'content': 'Hi'}]

    These are dicts, as the library types them. `strict` raises `LossError` where something has no
    place there.
    """
    conversation = conversation_of(messages)
    body, losses = wire_export(conversation, _CHAT if api == "chat" else _RESPONSES)
    found = body.get("messages" if api == "chat" else "input", [])
    listed = [{"role": "user", "content": found}] if isinstance(found, str) else found
    exported = Exported(
        listed, system=body.get("instructions"), losses=losses, omitted=facts_of(conversation)
    )
    return exported.or_raise() if strict else exported
