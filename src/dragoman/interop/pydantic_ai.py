"""pydantic-ai: `ModelRequest` and `ModelResponse`."""

from __future__ import annotations

from typing import Any

from dragoman.interop.exported import (
    Conversation,
    Exported,
    built,
    conversation_of,
    library,
    without_halves,
)
from dragoman.interop.incoming import read_peers
from dragoman.interop.objects import pydantic_ai_dump
from dragoman.interop.peers import pydantic_ai
from dragoman.interop.peers.kept_fields import Writing
from dragoman.model.collection import Messages
from dragoman.model.jsontext import dumps


def from_pydantic_ai(messages: Any) -> Messages:
    """Convert one or several pydantic-ai messages, such as `result.all_messages()`.

    Dumps of its `ModelMessagesTypeAdapter` are also accepted. New instructions become a system
    message.
    """
    return read_peers(messages, "pydantic-ai", pydantic_ai_dump, pydantic_ai.decode_messages)


def to_pydantic_ai(messages: Conversation, *, strict: bool = False) -> Exported:
    """Convert messages to pydantic-ai's, for `agent.run(…, message_history=…)`.

    `strict` raises `LossError` if something would be lost.
    """
    module = library("pydantic_ai.messages", "pydantic-ai-slim")
    writing = Writing()
    written = pydantic_ai.encode_messages(conversation_of(messages), writing)
    written = without_halves(written, writing.losses)
    adapter = module.ModelMessagesTypeAdapter
    made = built(lambda: adapter.validate_json(dumps(written)), "the history")
    exported = Exported(made, losses=writing.losses, omitted=writing.omitted)
    return exported.or_raise() if strict else exported
