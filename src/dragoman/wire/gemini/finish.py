"""Why an answer ended. `STOP` stands for tool calls too; what failed is told apart (W88)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.messages import Message
from dragoman.model.responses import Choice
from dragoman.model.tools import ToolCall
from dragoman.model.usage import FinishReason
from dragoman.wire.gemini.trace import NAME

_STOP, _LENGTH, _TOOL_CALLS = FinishReason.STOP, FinishReason.LENGTH, FinishReason.TOOL_CALLS
_FILTERED, _OTHER, _MALFORMED = (
    FinishReason.CONTENT_FILTER,
    FinishReason.OTHER,
    FinishReason.MALFORMED_CALL,
)

_REASONS = {
    "STOP": _STOP,
    "MAX_TOKENS": _LENGTH,
    "SAFETY": _FILTERED,
    "RECITATION": _FILTERED,
    "BLOCKLIST": _FILTERED,
    "PROHIBITED_CONTENT": _FILTERED,
    "SPII": _FILTERED,
    "IMAGE_SAFETY": _FILTERED,
    "IMAGE_PROHIBITED_CONTENT": _FILTERED,
    "IMAGE_RECITATION": _FILTERED,
    "MODEL_ARMOR": _FILTERED,  # Vertex AI's own filter; recorded, not in the SDK
    "LANGUAGE": FinishReason.ERROR,
    "NO_IMAGE": FinishReason.ERROR,
    "IMAGE_OTHER": FinishReason.ERROR,
    "MALFORMED_FUNCTION_CALL": _MALFORMED,
    "UNEXPECTED_TOOL_CALL": _MALFORMED,
    "TOO_MANY_TOOL_CALLS": _MALFORMED,
    "MALFORMED_RESPONSE": FinishReason.ERROR,
    "CONTINUATION": FinishReason.PAUSE,
}
_NUMBERS = ("FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER")
"""The same as numbers, which some clients' recordings hold."""
_WORDS = {
    _STOP: "STOP",
    _TOOL_CALLS: "STOP",
    _LENGTH: "MAX_TOKENS",
    FinishReason.CONTEXT_FULL: "MAX_TOKENS",
    _FILTERED: "SAFETY",
    FinishReason.REFUSAL: "SAFETY",
    _MALFORMED: "MALFORMED_FUNCTION_CALL",
    FinishReason.PAUSE: "CONTINUATION",
}


def decode_finish(wire: Any, calls: bool) -> tuple[FinishReason | None, str | None]:  # noqa: FBT001 - whether there are any
    """The reason and the wire's own word for it."""
    if type(wire) is int and 0 <= wire < len(_NUMBERS):
        wire = _NUMBERS[wire]
    if type(wire) is not str:
        return None, None
    reason = _REASONS.get(wire, _OTHER)
    return _TOOL_CALLS if reason is _STOP and calls else reason, wire


def encode_finish(choice: Choice) -> str | None:
    """The wire's word for why a choice ended: its own, where it is ours and still true."""
    finish, word = choice.finish, choice.finish_raw
    if word is not None and is_own(choice.message):
        expected, _ = decode_finish(word, has_calls(choice.message.parts))
        if finish is expected:
            return word
    return None if finish is None else _WORDS.get(finish, "OTHER")


def has_word(finish: FinishReason | None) -> bool:
    """Whether the wire can tell this reason."""
    return finish is None or finish is _OTHER or finish in _WORDS


def has_calls(parts: Iterable[AnyPart]) -> bool:
    """Whether the model calls tools."""
    return ToolCall in map(type, parts)


def is_own(message: Message) -> bool:
    """Whether a message came from this dialect, or from nowhere."""
    return message.origin is None or message.origin.dialect == NAME
