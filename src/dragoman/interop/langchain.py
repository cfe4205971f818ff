"""LangChain: `HumanMessage`, `AIMessage`, `SystemMessage`, `ToolMessage` and others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.interop.exported import Conversation, Exported, built, conversation_of, library
from dragoman.interop.incoming import read_peers
from dragoman.interop.objects import langchain_dump
from dragoman.interop.peers import langchain
from dragoman.interop.peers.kept_fields import Writing
from dragoman.model.collection import Messages


def from_langchain(messages: Any) -> Messages:
    """Convert one or several LangChain messages, or dumps of them (`messages_to_dict`).

    A chunk is treated as a whole message: add up the chunks of a stream first.
    """
    return read_peers(messages, "langchain", langchain_dump, langchain.decode_messages)


def to_langchain(messages: Conversation, *, strict: bool = False) -> Exported:
    """Convert messages to LangChain's; each tool result becomes a separate `ToolMessage`.

    `strict` raises `LossError` if something would be lost.
    """
    module = library("langchain_core.messages", "langchain-core")
    writing = Writing()
    dumps = langchain.encode_messages(conversation_of(messages), writing)
    made = [built(lambda dump=dump: _message(module, dump), "a message") for dump in dumps]  # type: ignore[misc]  # bound now
    exported = Exported(made, losses=writing.losses, omitted=writing.omitted)
    return exported.or_raise() if strict else exported


def _message(module: Any, dump: Mapping[str, Any]) -> Any:
    (made,) = module.messages_from_dict([{"type": dump["type"], "data": dump}])
    return made
