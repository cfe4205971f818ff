"""LangChain's messages, in the form of `message.model_dump()` and `messages_to_dict`."""

from __future__ import annotations

from dragoman.interop.peers.langchain.messages import UNREADABLE, decode_messages, encode_messages

__all__ = ["UNREADABLE", "decode_messages", "encode_messages"]
