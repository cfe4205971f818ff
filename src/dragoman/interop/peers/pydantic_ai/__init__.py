"""pydantic-ai's messages, in the form of its `ModelMessagesTypeAdapter`."""

from __future__ import annotations

from dragoman.interop.peers.pydantic_ai.messages import UNREADABLE, decode_messages, encode_messages

__all__ = ["UNREADABLE", "decode_messages", "encode_messages"]
