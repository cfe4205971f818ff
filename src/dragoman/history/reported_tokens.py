"""What the usage of a response says about the next prompt.

Usage counts the prompt and the response of one call. The next prompt contains both, except for
thinking, which may be dropped, and for rounds of provider-run tools within the call: their usage is
the sum of their prompts, each of which contains the previous one.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import ceil
from typing import NamedTuple

from dragoman.history.model_lookups import tool_input_count
from dragoman.history.part_tokens import (
    Size,
    json_tokens,
    size_of_message,
    size_of_parts,
    text_tokens,
)
from dragoman.model.messages import Message
from dragoman.model.parts import Opaque, Part, ServerToolCall, ServerToolResult, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.usage import Usage

# --- answers
#
# Providers differ in which thinking they keep. What they did with earlier thinking in the same
# conversation is the best predictor; otherwise the form in which the conversation holds it.


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


# --- reports


_MAX_TOKENS = 10**8  # tokens: ten times the largest existing context window
_MIN_SHARE_DIVISOR = 10  # a report below a tenth of the estimate is about something else
_SMOOTHING = 400  # tokens: a report about little text says little about the next prompt
MIN_RATIO, MAX_RATIO = 1.0, 1.5  # ratios outside this range have other causes than text
_MIN_FRAME, _FRAME_SCALE = 0.2, 2  # calls of at least half our estimate are counted as usual
_COSTLY_RATIO = 1.2  # tokens per estimated token: a provider with much overhead per call


class Anchor(NamedTuple):
    """What a report says about the list up to and including its response."""

    tokens: int
    ratio: float
    """Actual tokens per estimated token of text."""
    frame: float
    """The same for the overhead around the text."""


class Sent(NamedTuple):
    """Estimated sizes of what was sent before a response."""

    messages: Size
    around: Size
    """The tools and the system prompt at that time."""
    around_now: Size

    @property
    def total(self) -> Size:
        """Everything that the report is about."""
        return self.messages + self.around


class Reading(NamedTuple):
    """The tokens in a report, and whether they cover the prompt only or the response too."""

    tokens: int
    is_prompt: bool


def anchored(messages: Sequence[Message], index: int, sent: Sent, since: int = 0) -> Anchor | None:
    """The tokens up to and including the response at this index, if its report is plausible.

    `since`: reports before this index are about another list.
    """
    message = messages[index]
    usage = usage_of(message) if message.role is Role.ASSISTANT else None
    if usage is None or max(usage.total_input, usage.total_output) > _MAX_TOKENS:
        return None
    if usage.total_input > 0:
        goes_on = goes_on_after(messages, index)
        prompt = _prompt(message, usage, sent)
        is_costly = prompt - sent.total.media > _COSTLY_RATIO * sent.total.written
        tokens = _changed(prompt, sent)
        tokens += answer_tokens(message, usage, goes_on=goes_on, is_costly=is_costly)
        tokens += thinking_tokens(messages, index, usage, goes_on=goes_on, since=since)
    else:
        tokens, prompt = usage.total, usage.total - usage.total_output
    least = 0 if is_compacted(message) else sent.messages.total // _MIN_SHARE_DIVISOR
    if not least < tokens <= _MAX_TOKENS:
        return None
    return Anchor(tokens, _ratio(prompt, sent.total), _frame(message, usage))


def is_compacted(message: Message) -> bool:
    """Whether the provider may have compacted the conversation: then a small number is right."""
    return any(type(part) is Opaque for part in message.parts)


def usage_of(message: Message) -> Usage | None:
    """The response's usage, or only the total from `metadata["usage"]["total_tokens"]`."""
    if message.usage is not None:
        return message.usage
    usage = message.metadata.get("usage")
    total = usage.get("total_tokens") if isinstance(usage, Mapping) else None
    if type(total) is float and total.is_integer():  # JSON does not distinguish 1 and 1.0
        total = int(total)
    return Usage(reported_total=total) if type(total) is int and total >= 0 else None


def reading(message: Message) -> Reading | None:
    """What a response reported; `None` if it includes rounds of provider-run tools."""
    usage = usage_of(message)
    if usage is None or any(map(is_hosted, message.parts)):
        return None
    is_prompt = usage.total_input > 0
    tokens = usage.total_input - _tool_input(usage) if is_prompt else usage.total
    return Reading(tokens, is_prompt) if 0 < tokens <= _MAX_TOKENS else None


# --- how the provider counts


def _ratio(prompt: int, before: Size) -> float:
    """Actual tokens per estimated token of text; 1.0 if the prompt is mostly media."""
    if before.media > before.written:
        return 1.0
    ratio = (min(max(prompt - before.media, 0), _MAX_TOKENS) + _SMOOTHING) / (
        before.written + _SMOOTHING
    )
    return min(max(ratio, MIN_RATIO), MAX_RATIO)


def _frame(message: Message, usage: Usage) -> float:
    """The same for the overhead, measured on the calls of the response."""
    if not any(type(part) is ToolCall for part in message.parts):
        return 1.0
    ratio = _FRAME_SCALE * min(max(usage.output, 0), _MAX_TOKENS) / size_of_message(message).written
    return min(max(ratio, _MIN_FRAME), 1.0)


# --- the prompt


def _prompt(message: Message, usage: Usage, sent: Sent) -> int:
    """The part of the prompt that is sent again, without what is counted as the response."""
    reported = usage.total_input - _tool_input(usage)
    said = _parts_of_response(message.parts)
    rounds = _rounds(said)
    results = size_of_parts(part for part in said if type(part) is ServerToolResult)
    if reported < usage.total_input or not rounds:
        return reported + ceil(results.written)
    number = len(rounds) + 1
    if not all(seen for _, seen in rounds):
        # The tools' results may be most of the last prompt, or next to nothing.
        even = reported // number
        return even + (reported - even - min(even, sent.messages.total) * len(rounds)) // 3
    grown = sum(size.written for size, _ in rounds)
    first = max(0, reported - ceil(grown)) // number
    return min(reported, first + ceil(results.written))


def _tool_input(usage: Usage) -> int:
    """Input tokens from provider-run tools, where reported separately (Gemini: W98)."""
    if 0 < (told := usage.details.get("tool_input", 0)) < usage.total_input:
        return told
    for name, counts in usage.extras.items():  # as earlier versions stored it
        field = tool_input_count(name) if isinstance(counts, Mapping) else None
        brought = None if field is None else counts.get(field)
        if type(brought) is int and 0 < brought < usage.total_input:
            return brought
    return 0


def _parts_of_response(parts: Sequence[Part]) -> Sequence[Part]:
    """The parts produced in this response, without tools that ran before its first thinking.

    Those were called in the previous response and approved since, or only list the tools.
    """
    first = next((at for at, part in enumerate(parts) if not is_hosted(part)), 0)
    return parts[first:] if first and type(parts[first]) is Thinking else parts


def _rounds(parts: Sequence[Part]) -> list[tuple[Size, bool]]:
    """For each prompt after the first: its growth, and whether its results are in the list.

    A round ends where the model continues after a tool that the provider ran.
    """
    rounds: list[tuple[Size, bool]] = []
    size, seen = Size(), False
    for part, following in pairwise(parts):
        size += size_of_parts((part,))
        seen = seen or type(part) is ServerToolResult
        if is_hosted(part) and not _is_same_round(part, following):
            rounds.append((size, seen))
            seen = False
    return rounds


def _is_same_round(part: Part, following: Part) -> bool:
    return type(following) is ServerToolResult or (
        type(part) is ServerToolCall and type(following) is ServerToolCall
    )


def _changed(prompt: int, sent: Sent) -> int:
    """The prompt tokens, adjusted to the current tools and system prompt."""
    if sent.around == sent.around_now:
        return prompt
    more = sent.around_now.total - sent.around.total
    ratio = prompt / max(1, sent.total.total)
    if more > 0:
        return prompt + ceil(more * min(ratio, MAX_RATIO))
    kept = (sent.messages + sent.around_now).total
    return max(prompt + ceil(more * ratio), min(prompt, kept))
