"""pydantic-ai's messages, as its `ModelMessagesTypeAdapter` dumps them."""

from __future__ import annotations

from dragoman.wire.peers.pydantic_ai.messages import UNREADABLE, decode_messages, encode_messages

__all__ = ["UNREADABLE", "decode_messages", "encode_messages"]
