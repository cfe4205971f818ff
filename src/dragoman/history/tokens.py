"""How many tokens a conversation takes: what providers reported, and estimates for the rest.

No tokenizer is asked: there is one for each family of models, most are secret, and they agree well
enough on what is dear. A provider's own counting call can take the place of all this
(`TokenCounter`). Estimates lean to the high side: too many tokens cost a little room, too few
break the next call.
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
    """Counts in place of `count`, such as a provider's own counting call; sync or async."""

    def __call__(self, messages: Sequence[Message], /) -> int | Awaitable[int]:
        """The tokens of these messages."""
        ...


class Count(Value, frozen=True):
    """The tokens of a conversation, and how much of that is known."""

    total: int
    anchored: int = 0
    """What a provider reported; 0 where none did, and everything is estimated."""
    estimated: int = 0
    ratio: float = 1.0
    """What this provider counted for each token of our estimate; `estimated` heeds it already."""

    def _sizes(self) -> Iterator[str]:
        yield f"{self.anchored} reported"
        yield f"{self.estimated} estimated"


class Around(NamedTuple):
    """What is sent besides the messages."""

    tools: Sequence[AnyTool] = ()
    system: Sequence[Part] = ()

    @property
    def size(self) -> Size:
        """About what it costs."""
        return size_of_parts(self.system) + size_of_tools(self.tools)


def estimate(message: Message) -> int:
    """About what a message costs in a prompt.

    >>> estimate(Message.user("What is the weather in Basel?"))
    12
    """
    return size_of_message(message).total


def estimate_tools(tools: Iterable[AnyTool]) -> int:
    """About what the definitions of tools cost in a prompt."""
    return size_of_tools(tools).total


def count(
    messages: Sequence[Message],
    *,
    tools: Iterable[AnyTool] = (),
    system: Sequence[Part] = (),
    before: Around | None = None,
) -> Count:
    """The tokens of a list of messages as it was and would be sent.

    >>> from dragoman.model.usage import Usage
    >>> count([Message.user("hi"), Message.assistant("ho", usage=Usage(90, 10))]).total
    100

    An answer's `usage` says what everything up to it cost, the tools and the system prompt too.
    The latest that can be true is the anchor; what came after it is estimated. `before` is what
    was sent with the messages when that answer was given, if it was not these tools and system.
    """
    around = size_of_parts(system) + size_of_tools(tools)
    then = around if before is None else before.size
    return count_measured(Measured(messages), now=around, then=then)


def count_measured(
    measured: Measured, *, now: Size, then: Size, cover: Cover = ALL_REPORTS
) -> Count:
    """As `count`, of messages whose sizes are known, and by the reports that are about them."""
    counted = measured.counted(then, now, cover)
    if counted.anchor is None:
        total = (counted.rest + now).total
        return Count(total, estimated=total)
    tokens, rest = counted.anchor.tokens, estimated(counted)
    return Count(tokens + rest, tokens, rest, counted.anchor.ratio)
