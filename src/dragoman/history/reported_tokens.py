"""What the usage of an answer says about the prompt that it comes back in.

A report counts the prompt and the answer of one call. The next prompt holds both, but for thinking,
which comes back or not, and for the rounds that a provider ran within the call with tools of its
own: it reports the sum of their prompts, each of which holds the one before.
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

_MOST = 10**8  # tokens: ten times the largest window there is
_SLIVER = 10  # a report below a tenth of the estimate is about something else
_STEADY = 400  # tokens: a report on little text says little about the next
LEAST_RATIO, MOST_RATIO = 1.0, 1.5  # outside of these it is not the text that differs
_LEAST_FRAME, _MEAGRE = 0.2, 2  # calls of half our estimate or more: as others count
_DEAR = 1.2  # for a token of our estimate, of tools too: this provider wraps much around calls


class Anchor(NamedTuple):
    """What a report makes of the list up to and including its answer."""

    tokens: int
    ratio: float
    """What the provider counts for each token of our estimate of text."""
    frame: float
    """The same for what is around the text."""


class Sent(NamedTuple):
    """Estimates of what was sent before an answer."""

    messages: Size
    around: Size
    """The tools and the system prompt of then."""
    around_now: Size

    @property
    def total(self) -> Size:
        """All that the report is about."""
        return self.messages + self.around


class Reading(NamedTuple):
    """What a report says of a list without a closer look: of the prompt, or of the answer too."""

    tokens: int
    is_prompt: bool


def anchored(messages: Sequence[Message], index: int, sent: Sent, since: int = 0) -> Anchor | None:
    """What the answer at this place says of the tokens up to and including it, if that can be.

    `since`: what was reported before that place is about another list.
    """
    message = messages[index]
    usage = usage_of(message) if message.role is Role.ASSISTANT else None
    if usage is None or max(usage.total_input, usage.total_output) > _MOST:
        return None
    if usage.total_input > 0:
        goes_on = goes_on_after(messages, index)
        prompt = _prompt(message, usage, sent)
        is_dear = prompt - sent.total.media > _DEAR * sent.total.written
        tokens = _changed(prompt, sent)
        tokens += answer_tokens(message, usage, goes_on=goes_on, is_dear=is_dear)
        tokens += thinking_tokens(messages, index, usage, goes_on=goes_on, since=since)
    else:
        tokens, prompt = usage.total, usage.total - usage.total_output
    # Where the provider has compacted the conversation (an opaque item), little is right.
    is_compacted = any(type(part) is Opaque for part in message.parts)
    least = 0 if is_compacted else sent.messages.total // _SLIVER
    if not least < tokens <= _MOST:
        return None
    return Anchor(tokens, _ratio(prompt, sent.total), _frame(message, usage))


def usage_of(message: Message) -> Usage | None:
    """The answer's usage, or that in `metadata["usage"]["total_tokens"]`: the total alone."""
    if message.usage is not None:
        return message.usage
    usage = message.metadata.get("usage")
    total = usage.get("total_tokens") if isinstance(usage, Mapping) else None
    if type(total) is float and total.is_integer():  # JSON knows no difference
        total = int(total)
    return Usage(reported_total=total) if type(total) is int and total >= 0 else None


def reading(message: Message) -> Reading | None:
    """What an answer reported; None where rounds of a provider's own tools are in it."""
    usage = usage_of(message)
    if usage is None or any(map(is_hosted, message.parts)):
        return None
    is_prompt = usage.total_input > 0
    tokens = usage.total_input - _brought(usage) if is_prompt else usage.total
    return Reading(tokens, is_prompt) if 0 < tokens <= _MOST else None


# --- how this provider counts


def _ratio(prompt: int, before: Size) -> float:
    """How the provider counts text, as far as the prompt shows; media would only blur it."""
    if before.media > before.written:
        return 1.0
    ratio = (min(max(prompt - before.media, 0), _MOST) + _STEADY) / (before.written + _STEADY)
    return min(max(ratio, LEAST_RATIO), MOST_RATIO)


def _frame(message: Message, usage: Usage) -> float:
    """How it counts what is around the text: as little for a result as for the call before it."""
    if not any(type(part) is ToolCall for part in message.parts):
        return 1.0
    ratio = _MEAGRE * min(max(usage.output, 0), _MOST) / size_of_message(message).written
    return min(max(ratio, _LEAST_FRAME), 1.0)


# --- the prompt


def _prompt(message: Message, usage: Usage, sent: Sent) -> int:
    """The prompt that the answer would come back in, without what is counted as answer."""
    reported = usage.total_input - _brought(usage)
    said = _said(message.parts)
    rounds = _rounds(said)
    results = size_of_parts(part for part in said if type(part) is ServerToolResult)
    if reported < usage.total_input or not rounds:
        return reported + ceil(results.written)
    number = len(rounds) + 1
    if not all(seen for _, seen in rounds):
        # What the tools found may be most of the last prompt, or next to nothing.
        even = reported // number
        return even + (reported - even - min(even, sent.messages.total) * len(rounds)) // 3
    grown = sum(size.written for size, _ in rounds)
    first = max(0, reported - ceil(grown)) // number
    return min(reported, first + ceil(results.written))


def _brought(usage: Usage) -> int:
    """What the provider's own tools brought in, where it reports that apart (Gemini: W98)."""
    if 0 < (told := usage.details.get("tool_input", 0)) < usage.total_input:
        return told
    for name, counts in usage.extras.items():  # as earlier versions stored it
        field = tool_input_count(name) if isinstance(counts, Mapping) else None
        brought = None if field is None else counts.get(field)
        if type(brought) is int and 0 < brought < usage.total_input:
            return brought
    return 0


def _said(parts: Sequence[Part]) -> Sequence[Part]:
    """What the model said: a tool that ran before it first thought was not called in this answer.

    It was called in the one before, and approved since; or it told which tools there are.
    """
    first = next((at for at, part in enumerate(parts) if not is_hosted(part)), 0)
    return parts[first:] if first and type(parts[first]) is Thinking else parts


def _rounds(parts: Sequence[Part]) -> list[tuple[Size, bool]]:
    """For each prompt after the first: what it had more, and whether its results are in the list.

    A round ends where the model goes on after a tool that the provider ran.
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
    """The prompt with the tools and the system prompt of now in place of those of then."""
    if sent.around == sent.around_now:
        return prompt
    more = sent.around_now.total - sent.around.total
    ratio = prompt / max(1, sent.total.total)
    if more > 0:
        return prompt + ceil(more * min(ratio, MOST_RATIO))
    kept = (sent.messages + sent.around_now).total
    return max(prompt + ceil(more * ratio), min(prompt, kept))
