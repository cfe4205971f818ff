"""Counts the tokens of a conversation: as reported by providers, and estimated for the rest.

No tokenizer is used: every model family has its own, most are not public, and they roughly agree. A
provider's token counting API can be used instead (`TokenCounter`). Estimates are rather too high:
too many tokens waste a little space, too few break the next request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from dragoman.history.counted_tokens import ALL_REPORTS, Cover, Measured, estimated
from dragoman.history.part_tokens import Size, size_of_message, size_of_parts, size_of_tools
from dragoman.model.messages import Message
from dragoman.model.parts import Part
from dragoman.model.requests import AnyTool
from dragoman.model.value import Value


class TokenCounter(Protocol):
    """Counts tokens instead of `count`, such as with a provider's API; sync or async."""

    def __call__(self, messages: Sequence[Message], /) -> int | Awaitable[int]:
        """Returns the number of tokens of these messages."""
        ...


class Count(Value, frozen=True):
    """The tokens of a conversation, and how many of them are known."""

    total: int
    anchored: int = 0
    """Tokens reported by a provider; 0 if everything is estimated."""
    estimated: int = 0
    ratio: float = 1.0
    """Actual tokens per estimated token at this provider; already applied to `estimated`."""

    def _sizes(self) -> Iterator[str]:
        yield f"{self.anchored} reported"
        yield f"{self.estimated} estimated"


class Around(NamedTuple):
    """What is sent besides the messages."""

    tools: Sequence[AnyTool] = ()
    system: Sequence[Part] = ()

    @property
    def size(self) -> Size:
        """The estimated size."""
        return size_of_parts(self.system) + size_of_tools(self.tools)


def estimate(message: Message) -> int:
    """The estimated tokens of a message in a prompt.

    >>> estimate(Message.user("What is the weather in Basel?"))
    12
    """
    return size_of_message(message).total


def estimate_tools(tools: Iterable[AnyTool]) -> int:
    """The estimated tokens of tool definitions in a prompt."""
    return size_of_tools(tools).total


def count(
    messages: Sequence[Message],
    *,
    tools: Iterable[AnyTool] = (),
    system: Sequence[Part] = (),
    before: Around | None = None,
) -> Count:
    """Counts the tokens of messages in a prompt.

    >>> from dragoman.model.usage import Usage
    >>> count([Message.user("hi"), Message.assistant("ho", usage=Usage(90, 10))]).total
    100

    The `usage` of a response covers everything up to it, including tools and system prompt. The
    latest plausible one is the anchor; the messages after it are estimated. `before` is what was
    sent with the messages at that time, if it differs from these tools and system instructions.
    """
    around = size_of_parts(system) + size_of_tools(tools)
    then = around if before is None else before.size
    return count_measured(Measured(messages), now=around, then=then)


def count_measured(
    measured: Measured, *, now: Size, then: Size, cover: Cover = ALL_REPORTS
) -> Count:
    """Like `count`, for messages with known sizes, using the reports that apply to them."""
    counted = measured.counted(then, now, cover)
    if counted.anchor is None:
        total = (counted.rest + now).total
        return Count(total, estimated=total)
    tokens, rest = counted.anchor.tokens, estimated(counted)
    return Count(tokens + rest, tokens, rest, counted.anchor.ratio)
