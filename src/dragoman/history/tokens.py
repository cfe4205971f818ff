"""Counts the tokens of a conversation: as reported by providers, and estimated for the rest.

No tokenizer is used: every model family has its own, most are not public, and they roughly agree. A
provider's token counting API can be used instead (`TokenCounter`). Estimates are rather too high:
too many tokens waste a little space, too few break the next request.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from math import ceil
from typing import NamedTuple, Protocol

from dragoman.history.part_tokens import Size, size_of_message, size_of_parts, size_of_tools
from dragoman.history.reported_tokens import Anchor, Sent, anchored, is_compacted, reading, usage_of
from dragoman.model.messages import Message
from dragoman.model.parts import Part
from dragoman.model.requests import AnyTool
from dragoman.model.roles import Role
from dragoman.model.value import Value

_MAX_CACHED = 32_768
_MIN_RELIABLE_TOKENS = 400  # tokens: with less text, reports below our estimate are not trusted
_MIN_SLOPE = 0.3
_MAX_ERROR_FACTOR = 2  # factor: no calibrated estimate is this wrong


class Sizes:
    """A cache of estimated sizes, keyed by message object, as messages are immutable.

    A message replaced under the same id is another object. The cache is bounded.
    """

    __slots__ = ("_beside", "_known")

    def __init__(self) -> None:
        self._known: dict[int, tuple[Message, Size]] = {}  # holds the messages, so ids stay unique
        self._beside: tuple[Sequence[AnyTool], Sequence[Part], Size] = (), (), Size()

    def of(self, message: Message) -> Size:
        """The estimated size of a message."""
        found = self._known.get(id(message))
        if found is not None:
            return found[1]
        size = size_of_message(message)
        if len(self._known) >= _MAX_CACHED:
            self._known.clear()
        self._known[id(message)] = (message, size)
        return size

    def estimate(self, message: Message) -> int:
        """The estimated tokens of a message."""
        return self.of(message).total

    def beside(self, tools: Sequence[AnyTool], system: Sequence[Part]) -> Size:
        """The estimated size of tools and system instructions; cached, as they rarely change."""
        known_tools, known_system, size = self._beside
        if known_tools is not tools or known_system is not system:
            size = size_of_parts(system) + size_of_tools(tools)
            self._beside = tools, system, size
        return size

    def weight_of(self, messages: Iterable[Message]) -> int:
        """The estimated tokens of messages."""
        return sum(map(self.estimate, messages))


class Cover(NamedTuple):
    """Which usage reports apply to a window: a history may have several, for different models."""

    since: int = 0
    """Only reports from this index on; earlier ones are about a longer window."""
    ratio: float = 1.0
    """Actual tokens per estimated token, as far as known."""
    is_cut: bool = False
    """Whether a longer window may exist."""
    model: str | None = None
    """The model it is sent to: reports of other models are about other windows."""
    takes_all: bool = False
    """Whether every report is about this list, because it is not a window."""

    def takes(self, message: Message, tokens: int, sent: Size, *, is_mixed: bool) -> bool:
        """Whether a report of `tokens` can be about a prompt of the estimated size `sent`.

        Messages don't tell which window was sent. If another model gave the report, or if
        `is_mixed`, because reports contradict each other, one far below the estimate is about a
        shorter window, whose cut may not be known here, such as before a fork; and one far above it
        about a longer window. Otherwise it tells how wrong the estimate is, and what is sent
        besides the messages.
        """
        if self.takes_all or not (is_mixed or self._is_of_another_model(message)):
            return True
        ratio = max(self.ratio, 1.0)
        # The estimates of media are too rough to tell.
        is_shorter = _MAX_ERROR_FACTOR * tokens < sent.written * ratio
        if is_shorter and not is_compacted(message):
            return False
        return not self.is_cut or tokens <= _MAX_ERROR_FACTOR * sent.total * ratio

    def _is_of_another_model(self, message: Message) -> bool:
        answered = _model_of(message)
        if not answered or not self.model:
            return False
        one, other = _bare(answered), _bare(self.model)  # providers append a date to the name
        return not (one.startswith(other) or other.startswith(one))


def _bare(model: str) -> str:
    """The model's name without provider and vendor."""
    return (model.partition(":")[2] or model).rpartition("/")[2].lower()


ALL_REPORTS = Cover(takes_all=True)


def _model_of(message: Message) -> str | None:
    return None if message.origin is None else message.origin.model


class Counted(NamedTuple):
    """The tokens of a list: an anchor from a report, and the estimated size of the rest."""

    anchor: Anchor | None
    rest: Size


class _Report(NamedTuple):
    place: int
    tokens: int


_NO_REPORT = _Report(-1, 0)


class Measured:
    """A list of messages with their cumulative sizes."""

    __slots__ = (
        "_before",
        "_compared",
        "_contradicted",
        "_latest",
        "_reports",
        "_sizes",
        "messages",
    )

    def __init__(self, messages: Iterable[Message] = (), sizes: Sizes | None = None) -> None:
        self.messages: list[Message] = []
        self._sizes = Sizes() if sizes is None else sizes
        self._before = [Size()]
        self._reports: list[int] = []
        self._latest: dict[str | None, _Report] = {}  # by model
        self._contradicted = (
            -1
        )  # the index of the last report that the model's next one contradicts
        self._compared: list[tuple[str | None, _Report, int]] = []  # to undo comparisons
        self.extend(messages)

    def extend(self, messages: Iterable[Message]) -> None:
        """Adds messages."""
        before, total = self._before, self._before[-1]
        for message in messages:
            if message.role is Role.ASSISTANT and usage_of(message) is not None:
                self._reports.append(len(self.messages))
                self._compare(message)
            self.messages.append(message)
            total += self._sizes.of(message)
            before.append(total)

    def replace(self, place: int, message: Message) -> None:
        """Replaces a message, and recomputes the sizes after it."""
        later = self.messages[place + 1 :]
        del self.messages[place:], self._before[place + 1 :]
        while self._reports and self._reports[-1] >= place:
            self._reports.pop()
            model, latest, self._contradicted = self._compared.pop()
            self._latest[model] = latest
        self.extend((message, *later))

    def _compare(self, message: Message) -> None:
        """Compares a report with the model's previous one.

        A list only grows, by what was added: if the later report is smaller, or larger by far more,
        the two are about different windows.
        """
        told, model = reading(message), _model_of(message)
        latest = self._latest.get(model, _NO_REPORT)
        self._compared.append((model, latest, self._contradicted))
        if told is None:
            return
        if latest.tokens:
            added = (self._before[-1] - self._before[latest.place]).total
            most = _MAX_ERROR_FACTOR * (latest.tokens + _MAX_ERROR_FACTOR * added)
            if not latest.tokens <= told.tokens <= most:
                self._contradicted = max(self._contradicted, latest.place)
        self._latest[model] = _Report(len(self.messages), told.tokens)

    @property
    def total(self) -> Size:
        """The estimated size of all messages."""
        return self._before[-1]

    def counted(self, then: Size, now: Size, cover: Cover = ALL_REPORTS) -> Counted:
        """The latest report for this window, and the estimated size of the messages after it.

        `then` and `now` are the sizes of what was sent besides the messages, at the time of the
        report and now.
        """
        for place in reversed(self._reports):
            if place < cover.since:
                break
            sent = Sent(self._before[place], then, now)
            anchor = anchored(self.messages, place, sent, cover.since)
            if anchor is not None and self._is_covered(place, sent.total, cover):
                return Counted(anchor, self.total - self._before[place + 1])
        return Counted(None, self.total)

    def _is_covered(self, place: int, sent: Size, cover: Cover) -> bool:
        message = self.messages[place]
        told = reading(message)
        if told is None:
            return True
        return cover.takes(message, told.tokens, sent, is_mixed=self._is_mixed(cover))

    def _is_mixed(self, cover: Cover) -> bool:
        """Whether reports since the cut contradict each other."""
        return self._contradicted >= cover.since

    def slope(self, beside: Size, cover: Cover = ALL_REPORTS) -> float | None:
        """Actual tokens per estimated token, from the growth between reports.

        Between two reports of a model, only the messages in between are new; tools and
        instructions, which may not be fully known, are in both. `None` if no two reports are
        comparable, or they go up and down, which means they are about several windows.
        """
        grown = weight = media = falls = 0
        latest: dict[str | None, tuple[int, int]] = {}
        for place, tokens, model in self._readings(beside, cover):
            before, less = latest.get(model, (place, tokens))
            latest[model] = place, tokens
            if tokens < less:  # truncated or compacted: earlier reports are about another list
                grown, weight, media, falls = 0, 0, 0, falls + 1
            elif tokens > less:
                grown += tokens - less
                weight += self._sizes.weight_of(self.messages[before:place])
                media += self._before[place].media - self._before[before].media
        written = weight - media
        if falls > 1 or grown <= media or written <= media:
            return None
        slope = (grown - media) / written
        return max(slope, _MIN_SLOPE if written >= _MIN_RELIABLE_TOKENS else 1.0)

    def _readings(self, beside: Size, cover: Cover) -> Iterator[tuple[int, int, str | None]]:
        """For each report: the end index of what it covers, its tokens, and its model."""
        for place in self._reports[bisect_right(self._reports, cover.since - 1) :]:
            message = self.messages[place]
            told = reading(message)
            if told is None:
                continue
            end = place if told.is_prompt else place + 1
            sent = self._before[end] + beside
            if cover.takes(message, told.tokens, sent, is_mixed=self._is_mixed(cover)):
                yield end, told.tokens, _model_of(message)


def estimated(counted: Counted) -> int:
    """The estimated tokens after the anchor."""
    anchor, (text, frame, media) = counted
    if anchor is None:
        return counted.rest.total
    return ceil(text * anchor.ratio + frame * min(anchor.ratio, anchor.frame)) + media


def place_of(id: str, messages: Sequence[Message]) -> int | None:
    """The index of the last message with an id; searches from the end, where it usually is."""
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].id == id:
            return place
    return None


# --- counts of a conversation


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
