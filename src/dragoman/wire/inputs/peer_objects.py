"""Message objects of LangChain and pydantic-ai."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from dragoman.model.messages import Message
from dragoman.wire.inputs.object_data import Plain, dump_model, guarded, refuse
from dragoman.wire.peers import langchain, pydantic_ai

_PYDANTIC_AI = "pydantic_ai.messages"


def read_peer_object(value: object) -> Message | list[Message] | None:
    """The message or messages in an object; None where it is neither library's."""
    if peer_of(type(value)) is None:
        return None
    found = read_peer_objects([value])
    return found[0] if len(found) == 1 else found


def read_peer_objects(values: Sequence[object]) -> list[Message]:
    """The messages in objects that are all of one of the libraries."""
    if not values:
        return []
    is_langchain = peer_of(type(values[0])) == "langchain"
    dump = langchain_dump if is_langchain else pydantic_ai_dump
    decode = langchain.decode_messages if is_langchain else pydantic_ai.decode_messages
    dumps = [dump(value) for value in values]
    found: list[Message] = guarded(values[0], lambda: decode(dumps))
    return found


def peer_of(kind: type) -> str | None:
    """Which of the libraries a class, or one that it is derived from, was defined in."""
    for base in kind.__mro__:
        module: object = base.__module__
        if not isinstance(module, str):
            continue
        if module.startswith("langchain_core.messages") and base.__name__ == "BaseMessage":
            return "langchain"
        if module == _PYDANTIC_AI and base.__name__ in {"ModelRequest", "ModelResponse"}:
            return "pydantic-ai"
    return None


def langchain_dump(value: Any) -> dict[str, Any]:
    """A LangChain message as it is dumped, with the places of what can't be."""
    reading = Plain(value)
    dump = guarded(value, lambda: reading.read(dump_model(value)))
    if not isinstance(dump, dict):
        refuse(value, "is not a message")
    if reading.unreadable:
        dump[langchain.UNREADABLE] = reading.unreadable
    return dump


def pydantic_ai_dump(value: object) -> dict[str, Any]:
    """A message of pydantic-ai as its own adapter dumps it: the library is there if it is."""
    adapter = getattr(sys.modules.get(_PYDANTIC_AI), "ModelMessagesTypeAdapter", None)
    if adapter is None:
        refuse(value, "can't be read without pydantic-ai")
    reading = Plain(value)
    options: dict[str, Any] = {"mode": "json", "warnings": False, "fallback": reading.fallback}
    (dumped,) = guarded(value, lambda: adapter.dump_python([value], **options))
    dump = guarded(value, lambda: reading.read(dumped))
    if not isinstance(dump, dict):
        refuse(value, "is not a message")
    if reading.unreadable:
        dump[pydantic_ai.UNREADABLE] = True
    return dump
