"""Estimates how much of a response is part of the next prompt: all visible content, some thinking.

Providers differ in which thinking they keep. What they did with earlier thinking in the same
conversation is the best predictor; otherwise the form in which the conversation holds it.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode
from collections.abc import Sequence
from itertools import pairwise
from math import ceil

from dragoman.history.part_tokens import size_of_message, size_of_parts
from dragoman.history.text_tokens import json_tokens, text_tokens
from dragoman.model.messages import Message
from dragoman.model.parts import Part, ServerToolCall, ServerToolResult, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.usage import Usage

# A response with more tokens per estimated token than this contains hidden thinking. For: text;
# tool calls; tool calls of a provider with much overhead per call; responses that report thinking.
_MAX_RATIO_TEXT, _MAX_RATIO_CALL, _MAX_RATIO_COSTLY_CALL, _MAX_RATIO_THINKING = 2.8, 2.0, 4.0, 1.5
_VISIBLE_RATIO = 1.1  # tokens per estimated token, where most of the reported tokens are thinking
_UNKNOWN_SIGNATURE_SHARE = (
    0.6  # share of thinking that may have been kept: a compromise between all and none
)
_MAX_LOOKBACK = 16  # messages: how far back to look for a precedent
_MIN_THINKING_TOKENS = 20  # tokens of thinking: fewer are lost in the error of the estimate
_HEAD_CHARS = 8  # of base64: a tag and the longest plausible length
_TAG_1, _TAG_2 = b"\n", b"\x12"
_VARINT_CONTINUES = 0x80  # the continuation bit of a varint


def goes_on_after(messages: Sequence[Message], index: int) -> bool:
    """Whether the turn continues after this response: its tool calls have, or will get, results."""
    if index + 1 < len(messages):
        return any(type(part) is ToolResult for part in messages[index + 1].parts)
    return any(type(part) is ToolCall for part in messages[index].parts)


def is_hosted(part: Part) -> bool:
    """Whether the part belongs to a tool that the provider ran."""
    return type(part) is ServerToolCall or type(part) is ServerToolResult


def answer_tokens(message: Message, usage: Usage, *, goes_on: bool, is_costly: bool) -> int:
    """How many of the response's tokens are part of the next prompt, apart from thinking."""
    thoughts = [part for part in message.parts if type(part) is Thinking]
    is_sealed = any(part.signature for part in message.parts) or any(t.data for t in thoughts)
    shown = size_of_message(message).written - (0 if goes_on else size_of_parts(thoughts).written)
    if is_sealed:
        hidden = goes_on and usage.thinking <= 0  # sealed thinking that is not in the usage
        return max(0, usage.output, ceil(shown) if hidden else 0)
    if usage.output > _max_ratio(message, usage, is_costly=is_costly) * shown:
        return ceil(_VISIBLE_RATIO * shown)  # the rest was thinking that the list does not contain
    return max(0, usage.output)


def _max_ratio(message: Message, usage: Usage, *, is_costly: bool) -> float:
    """The maximum tokens per estimated token for a response without hidden thinking."""
    kinds = set(map(type, message.parts))
    if is_costly and ToolCall in kinds:
        return _MAX_RATIO_COSTLY_CALL
    if usage.thinking > 0 and Thinking not in kinds:
        return _MAX_RATIO_THINKING
    return _MAX_RATIO_CALL if ToolCall in kinds else _MAX_RATIO_TEXT


# --- thinking


def thinking_tokens(
    messages: Sequence[Message], index: int, usage: Usage, *, goes_on: bool, since: int = 0
) -> int:
    """How many thinking tokens are part of the next prompt, by precedent or otherwise by form."""
    expected = _expected_thinking(messages[index], usage.thinking, goes_on=goes_on)
    if usage.thinking <= 0:
        return expected
    came_back = _precedent(messages, index, goes_on=goes_on, since=since)
    if came_back is None:
        return expected
    return max(expected, usage.thinking) if came_back else 0


def _precedent(
    messages: Sequence[Message], index: int, *, goes_on: bool, since: int
) -> bool | None:
    """Whether thinking was kept the last time a turn continued like this; `None` if unknown."""
    answers = [
        at for at in range(max(since, index - _MAX_LOOKBACK), index + 1) if _reports(messages[at])
    ]
    for at, following in reversed(list(pairwise(answers))):
        if goes_on_after(messages, at) == goes_on:
            came_back = _came_back(messages, at, following)
            if came_back is not None:
                return came_back
    return None


def _reports(message: Message) -> bool:
    usage = message.usage
    is_answer = message.role is Role.ASSISTANT and usage is not None and usage.total_input > 0
    return is_answer and not any(map(is_hosted, message.parts))


def _came_back(messages: Sequence[Message], at: int, following: int) -> bool | None:
    """Whether the thinking of one response was in the next prompt; `None` if that is unclear."""
    usage, then = messages[at].usage or Usage(), messages[following].usage or Usage()
    between = sum(size_of_message(message).total for message in messages[at + 1 : following])
    if usage.thinking < max(_MIN_THINKING_TOKENS, between):
        return None
    grown = then.total_input - usage.total_input
    shown = answer_tokens(messages[at], usage, goes_on=goes_on_after(messages, at), is_costly=True)
    return 2 * (grown - shown - between) > usage.thinking


def _expected_thinking(message: Message, reported: int, *, goes_on: bool) -> int:
    """How much of the separately reported thinking is part of the next prompt.

    All of it while the turn continues, if the list has it in some form: as a part, as a signature,
    or in wire fields without a canonical equivalent. After the next user message, providers drop
    it, except for signed text, which Claude keeps and Gemini treats as text.
    """
    thoughts = [part for part in message.parts if type(part) is Thinking]
    signatures = [part.signature for part in message.parts if part.signature]
    if reported <= 0:
        return 0
    if not (thoughts or signatures):
        return min(reported, ceil(json_tokens(message.extras))) if goes_on else 0
    is_sealed = any(thought.data for thought in thoughts)
    text = 0 if is_sealed else ceil(sum(text_tokens(thought.text) for thought in thoughts))
    if any(thought.signature for thought in thoughts) or (goes_on and thoughts):
        return max(reported, text)
    if goes_on:
        return ceil(reported * max(map(_signature_share, signatures)))
    return text if signatures else 0


def _signature_share(signature: str) -> float:
    """The share of the thinking before a call that its signature represents.

    Gemini's signatures represent all of it, with one exception: a protocol buffer with only field
    1, which the next prompt counts as nothing. A signature that can't be decoded may be either.
    """
    try:
        head = urlsafe_b64decode(signature[:_HEAD_CHARS].replace("+", "-").replace("/", "_"))
    except (binascii.Error, ValueError):
        return _UNKNOWN_SIGNATURE_SHARE
    if not head.startswith((_TAG_1, _TAG_2)):
        return _UNKNOWN_SIGNATURE_SHARE
    return 0.0 if _is_single_field(head, len(signature.rstrip("=")) * 3 // 4) else 1.0


def _is_single_field(head: bytes, size: int) -> bool:
    """Whether the message consists of field 1 only, judging by its length prefix."""
    if not head.startswith(_TAG_1):
        return False
    length, shift, at = 0, 0, 1
    while at < len(head):
        length |= (head[at] % _VARINT_CONTINUES) << shift
        at, shift = at + 1, shift + 7
        if head[at - 1] < _VARINT_CONTINUES:
            break
    return at + length >= size
