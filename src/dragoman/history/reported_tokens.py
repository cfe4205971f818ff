"""What the usage of a response says about the next prompt.

Usage counts the prompt and the response of one call. The next prompt contains both, except for
thinking, which may be dropped, and for rounds of provider-run tools within the call: their usage is
the sum of their prompts, each of which contains the previous one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import ceil
from typing import NamedTuple

from dragoman.history.answer_tokens import answer_tokens, goes_on_after, is_hosted, thinking_tokens
from dragoman.history.model_lookups import tool_input_count
from dragoman.history.part_tokens import Size, size_of_message, size_of_parts
from dragoman.model.messages import Message
from dragoman.model.parts import Opaque, Part, ServerToolCall, ServerToolResult, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall
from dragoman.model.usage import Usage

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
