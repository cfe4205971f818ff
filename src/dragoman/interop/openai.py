"""The openai library: Chat Completions messages, and Responses items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from dragoman.interop.exported import Conversation, Exported, conversation_of, facts_of, wire_export
from dragoman.interop.incoming import items_of, read_all, read_system
from dragoman.interop.sdk_objects import sdk_wire
from dragoman.model.collection import Messages
from dragoman.wire.detection import dialect_of_history

_CHAT = "openai-chat"
_RESPONSES = "openai-responses"


def from_openai(messages: Any, *, instructions: Any = None) -> Messages:
    """Convert messages of the openai library, as objects or dicts, of either API.

    Accepts one or several messages, `ChatCompletion` and `Response` objects, items of
    `response.output`, and the dicts of a request. Objects of Groq and Mistral are also accepted.
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
    """Convert messages for `chat.completions.create(messages=…)` or `responses.create(input=…)`.

    >>> from dragoman import Message
    >>> to_openai([Message.user("Hi")]).messages
    [{'role': 'user', 'content': 'Hi'}]

    The messages are dicts, as in the library's types. `strict` raises `LossError` if something
    would be lost.
    """
    conversation = conversation_of(messages)
    body, losses = wire_export(conversation, _CHAT if api == "chat" else _RESPONSES)
    found = body.get("messages" if api == "chat" else "input", [])
    listed = [{"role": "user", "content": found}] if isinstance(found, str) else found
    exported = Exported(
        listed, system=body.get("instructions"), losses=losses, omitted=facts_of(conversation)
    )
    return exported.or_raise() if strict else exported
