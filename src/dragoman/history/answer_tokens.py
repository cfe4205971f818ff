"""What of an answer comes back in the next prompt: all that it shows, and some of its thinking.

Thinking comes back or not as providers please. What they did with that of an earlier answer in the
same list tells best; else the form in which the list has it.
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

# An answer of more tokens than this many estimates was thought over in silence: one in words, one
# that calls tools, one that calls those of a provider who wraps much around calls, and one that is
# known to have been thought over.
_MOST_OF_TEXT, _MOST_OF_CALL, _MOST_OF_DEAR_CALL, _MOST_OF_HIDDEN = 2.8, 2.0, 4.0, 1.5
_SHOWN = 1.1  # tokens for an estimated one, where what was reported is mostly thinking
_UNREAD = 0.6  # of the thinking, where it may have been kept: right for neither, bad for none
_BACK = 16  # messages: how far back a precedent is looked for
_TELLING = 20  # tokens of thinking: less is lost in the estimate of what is beside it
_HEAD_CHARS = 8  # of base64: a tag and the longest length that is one
_TAG_1, _TAG_2 = b"\n", b"\x12"
_MORE = 0x80  # in a byte of a length: another follows


def goes_on_after(messages: Sequence[Message], index: int) -> bool:
    """Whether the turn goes on after this answer: its calls are answered, or will be."""
    if index + 1 < len(messages):
        return any(type(part) is ToolResult for part in messages[index + 1].parts)
    return any(type(part) is ToolCall for part in messages[index].parts)


def is_hosted(part: Part) -> bool:
    """Whether this is of a tool that the provider ran."""
    return type(part) is ServerToolCall or type(part) is ServerToolResult


def answer_tokens(message: Message, usage: Usage, *, goes_on: bool, is_dear: bool) -> int:
    """What of the answer's tokens comes back in the next prompt, thinking left aside."""
    thoughts = [part for part in message.parts if type(part) is Thinking]
    is_sealed = any(part.signature for part in message.parts) or any(t.data for t in thoughts)
    shown = size_of_message(message).written - (0 if goes_on else size_of_parts(thoughts).written)
    if is_sealed:
        hidden = goes_on and usage.thinking <= 0  # what comes back sealed was not counted at all
        return max(0, usage.output, ceil(shown) if hidden else 0)
    if usage.output > _most(message, usage, is_dear=is_dear) * shown:
        return ceil(_SHOWN * shown)  # the rest was thinking that is not in the list
    return max(0, usage.output)


def _most(message: Message, usage: Usage, *, is_dear: bool) -> float:
    """How many tokens there can be in an answer for each that we estimate of what it shows."""
    kinds = set(map(type, message.parts))
    if is_dear and ToolCall in kinds:
        return _MOST_OF_DEAR_CALL
    if usage.thinking > 0 and Thinking not in kinds:
        return _MOST_OF_HIDDEN
    return _MOST_OF_CALL if ToolCall in kinds else _MOST_OF_TEXT


# --- thinking


def thinking_tokens(
    messages: Sequence[Message], index: int, usage: Usage, *, goes_on: bool, since: int = 0
) -> int:
    """What of the thinking comes back: as earlier in this list, or as it does elsewhere."""
    expected = _thought(messages[index], usage.thinking, goes_on=goes_on)
    if usage.thinking <= 0:
        return expected
    came_back = _precedent(messages, index, goes_on=goes_on, since=since)
    if came_back is None:
        return expected
    return max(expected, usage.thinking) if came_back else 0


def _precedent(
    messages: Sequence[Message], index: int, *, goes_on: bool, since: int
) -> bool | None:
    """Whether thinking came back when a turn last went on like this one; None where none tells."""
    answers = [at for at in range(max(since, index - _BACK), index + 1) if _reports(messages[at])]
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
    """Whether the thinking of one answer was in the prompt of the next; None where that is open."""
    usage, then = messages[at].usage or Usage(), messages[following].usage or Usage()
    between = sum(size_of_message(message).total for message in messages[at + 1 : following])
    if usage.thinking < max(_TELLING, between):
        return None
    grown = then.total_input - usage.total_input
    shown = answer_tokens(messages[at], usage, goes_on=goes_on_after(messages, at), is_dear=True)
    return 2 * (grown - shown - between) > usage.thinking


def _thought(message: Message, reported: int, *, goes_on: bool) -> int:
    """What of the thinking that was reported apart comes back.

    All of it while the turn goes on, if the list has it in some form: as a part, in a signature, or
    in fields of the wire that have no place here. Once the user speaks again, providers drop it,
    but for text that is signed, which Claude keeps and Gemini takes for text.
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
        return ceil(reported * max(map(_held, signatures)))
    return text if signatures else 0


def _held(signature: str) -> float:
    """How much of the thinking before a call its signature stands for.

    Gemini's stand for all of it, but for one form: a protocol buffer with field 1 alone, which the
    next prompt counts as nothing. What can't be read may be either.
    """
    try:
        head = urlsafe_b64decode(signature[:_HEAD_CHARS].replace("+", "-").replace("/", "_"))
    except (binascii.Error, ValueError):
        return _UNREAD
    if not head.startswith((_TAG_1, _TAG_2)):
        return _UNREAD
    return 0.0 if _is_single_field(head, len(signature.rstrip("=")) * 3 // 4) else 1.0


def _is_single_field(head: bytes, size: int) -> bool:
    """Whether field 1 is all that there is, by the length it begins with."""
    if not head.startswith(_TAG_1):
        return False
    length, shift, at = 0, 0, 1
    while at < len(head):
        length |= (head[at] % _MORE) << shift
        at, shift = at + 1, shift + 7
        if head[at - 1] < _MORE:
            break
    return at + length >= size
