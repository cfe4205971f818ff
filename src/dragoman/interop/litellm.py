"""LiteLLM: messages in OpenAI's format, with Anthropic's signed thinking in extra fields."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dragoman.interop.exported import (
    Conversation,
    Exported,
    built,
    conversation_of,
    facts_of,
    library,
    wire_export,
)
from dragoman.interop.incoming import read_all
from dragoman.interop.peers.litellm import (
    FIELD,
    is_signed,
    thinking_blocks,
    with_thinking_blocks,
)
from dragoman.model.collection import Messages
from dragoman.model.messages import Message
from dragoman.model.parts import Thinking

_NAME = "openai-chat"


def from_litellm(messages: Any) -> Messages:
    """Convert one or several of LiteLLM's `Message` and `ModelResponse` objects, or dicts."""
    return read_all(messages, _NAME, system=[], then=with_thinking_blocks)


def to_litellm(messages: Conversation, *, strict: bool = False) -> Exported:
    """Convert messages for `litellm.completion(messages=…)`.

    Assistant messages become `litellm.Message` objects, all others dicts. Signed thinking goes
    into `thinking_blocks`, from which LiteLLM sends it back to its provider. `strict` raises
    `LossError` if something would be lost.
    """
    types = library("litellm.types.utils", "litellm")
    conversation = conversation_of(messages)
    body, losses = wire_export(Messages.wrapping(map(_with_blocks, conversation)), _NAME)
    carried = _places_of_signed(conversation)
    exported = Exported(
        [_made(wire, types) for wire in body.get("messages", [])],
        losses=[loss for loss in losses if loss.path not in carried],
        omitted=facts_of(conversation),
    )
    return exported.or_raise() if strict else exported


def _with_blocks(message: Message) -> Message:
    """The message with its signed thinking as a wire field."""
    blocks = thinking_blocks(message)
    if not blocks:
        return message
    own = {**message.extras.get(_NAME, {}), FIELD: blocks}
    return replace(message, extras={**message.extras, _NAME: own})


def _places_of_signed(messages: Messages) -> set[str]:
    return {
        f"messages[{index}].parts[{place}]"
        for index, message in enumerate(messages)
        for place, part in enumerate(message.parts)
        if isinstance(part, Thinking) and is_signed(message, part)
    }


def _made(wire: dict[str, Any], types: Any) -> Any:
    if wire.get("role") != "assistant":
        return wire
    text = "".join(block.get("thinking", "") for block in wire.get(FIELD, ()))
    if text:  # LiteLLM repeats the blocks' text here
        wire = {"reasoning_content": text, **wire}
    return built(lambda: types.Message(**wire), "a Message")
