"""LangChain's messages, as `message.model_dump()` and `messages_to_dict` write them."""

from __future__ import annotations

from dragoman.wire.peers.langchain.messages import UNREADABLE, decode_messages, encode_messages

__all__ = ["UNREADABLE", "decode_messages", "encode_messages"]
