"""`thinking_blocks`: LiteLLM's form of signed thinking on OpenAI-style messages.

The blocks are Anthropic's. `reasoning_content` beside them has the same text, joined.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dragoman.model.messages import Message
from dragoman.model.parts import Thinking
from dragoman.model.roles import Role
from dragoman.wire.openai_chat.carried import decode_block
from dragoman.wire.overlay import fields_of

FIELD = "thinking_blocks"
_CHAT = "openai-chat"


def with_thinking_blocks(message: Message) -> Message:
    """The message with the thinking of its `thinking_blocks`, signatures included."""
    if message.role is not Role.ASSISTANT:
        return message
    blocks = fields_of(message.extras, _CHAT).get(FIELD)
    found = [decode_block(block) for block in blocks] if isinstance(blocks, list) else []
    signed = [part for part in found if part is not None]
    if not signed or len(signed) != len(found):
        return message
    text = "".join(part.text for part in signed)
    others = [
        part for part in message.parts if not (isinstance(part, Thinking) and part.text == text)
    ]
    fields = {key: item for key, item in message.extras[_CHAT].items() if key != FIELD}
    extras = {key: message.extras[key] for key in message.extras if key != _CHAT}
    return replace(
        message, parts=(*signed, *others), extras={**extras, _CHAT: fields} if fields else extras
    )


def thinking_blocks(message: Message) -> list[dict[str, Any]]:
    """The blocks for a message's signed thinking."""
    blocks: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, Thinking) and is_signed(message, part):
            if part.data is not None:
                blocks.append({"type": "redacted_thinking", "data": part.data})
            else:
                block = {"type": "thinking", "thinking": part.text, "signature": part.signature}
                blocks.append(block)
    return blocks


def is_signed(message: Message, part: Thinking) -> bool:
    """Whether this is Anthropic's thinking, which must be sent back with its signature."""
    origin = message.origin_of(part)
    has_proof = part.signature is not None or part.data is not None
    return has_proof and (origin is None or origin.dialect == "anthropic")
