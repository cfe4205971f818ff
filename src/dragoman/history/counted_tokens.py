"""The tokens of messages, counted as they come: what has been counted is not counted again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from typing import NamedTuple

from dragoman.history.part_tokens import Size, size_of_message, size_of_parts, size_of_tools
from dragoman.history.reported_tokens import Anchor, Sent, anchored, reading, usage_of
from dragoman.model.messages import Message
from dragoman.model.parts import Part
from dragoman.model.requests import AnyTool
from dragoman.model.roles import Role

_MOST = 32_768
_STEADY = 400  # tokens: reports on less text are not believed to be about less than we estimate
_LEAST_SLOPE = 0.3
_FAR_OFF = 2  # times: no estimate, once it is calibrated, is so wrong


class Sizes:
    """The estimated sizes of messages, remembered by the messages themselves: they never change.

    One that is replaced under its id is another. Bounded: what is too many is counted anew.
    """

    __slots__ = ("_beside", "_known")

    def __init__(self) -> None:
        self._known: dict[int, tuple[Message, Size]] = {}  # held, so that no other has its address
        self._beside: tuple[Sequence[AnyTool], Sequence[Part], Size] = (), (), Size()

    def of(self, message: Message) -> Size:
        """About what a message costs."""
        found = self._known.get(id(message))
        if found is not None:
            return found[1]
        size = size_of_message(message)
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[id(message)] = (message, size)
        return size

    def estimate(self, message: Message) -> int:
        """The same as one number."""
        return self.of(message).total

    def beside(self, tools: Sequence[AnyTool], system: Sequence[Part]) -> Size:
        """About what tools and system instructions cost; most often they are the same again."""
        known_tools, known_system, size = self._beside
        if known_tools is not tools or known_system is not system:
            size = size_of_parts(system) + size_of_tools(tools)
            self._beside = tools, system, size
        return size

    def weight_of(self, messages: Iterable[Message]) -> int:
        """The estimated tokens of messages."""
        return sum(map(self.estimate, messages))


class Cover(NamedTuple):
    """Which reports are about a window: a history may have others, for other models."""

    since: int = 0
    """Those of messages from this place on; before, they are about a longer one."""
    ratio: float = 1.0
    """Tokens for each estimated one, as far as is known."""
    is_cut: bool = False
    """Whether there can be a longer one."""
    is_shared: bool = False
    """Whether there are others."""
    model: str | None = None
    """Whom it is sent to: what another model reports is about another window."""

    def takes(self, message: Message, tokens: int, estimate: int) -> bool:
        """Whether a report of so many tokens can be about what is estimated at so many."""
        if not self.is_shared and not self._is_anothers(message):
            return True
        expected = estimate * max(self.ratio, 1.0)
        is_longer = self.is_cut and tokens > _FAR_OFF * expected
        return not is_longer and _FAR_OFF * tokens >= expected

    def _is_anothers(self, message: Message) -> bool:
        answered = None if message.origin is None else message.origin.model
        if not answered or not self.model:
            return False
        one, other = _bare(answered), _bare(self.model)  # providers answer with a date behind it
        return not (one.startswith(other) or other.startswith(one))


def _bare(model: str) -> str:
    """The model's name without its provider's and its maker's."""
    return (model.partition(":")[2] or model).rpartition("/")[2].lower()


ALL_REPORTS = Cover()


class Counted(NamedTuple):
    """The tokens of a list: what was reported, and by estimate what came after."""

    anchor: Anchor | None
    rest: Size


class Measured:
    """A list of messages, and how much there is before each of them."""

    __slots__ = ("_before", "_reports", "_sizes", "messages")

    def __init__(self, messages: Iterable[Message] = (), sizes: Sizes | None = None) -> None:
        self.messages: list[Message] = []
        self._sizes = Sizes() if sizes is None else sizes
        self._before = [Size()]
        self._reports: list[int] = []
        self.extend(messages)

    def extend(self, messages: Iterable[Message]) -> None:
        """Count more messages."""
        before, total = self._before, self._before[-1]
        for message in messages:
            if message.role is Role.ASSISTANT and usage_of(message) is not None:
                self._reports.append(len(self.messages))
            self.messages.append(message)
            total += self._sizes.of(message)
            before.append(total)

    def replace(self, place: int, message: Message) -> None:
        """Another message in that place; what follows is added up anew."""
        later = self.messages[place + 1 :]
        del self.messages[place:], self._before[place + 1 :]
        del self._reports[bisect_right(self._reports, place - 1) :]
        self.extend((message, *later))

    @property
    def total(self) -> Size:
        """All of them, by estimate."""
        return self._before[-1]

    def counted(self, then: Size, now: Size, cover: Cover = ALL_REPORTS) -> Counted:
        """What was reported last of this window, and an estimate of the rest.

        `then` and `now` are what is sent besides the messages, when it was reported and now.
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
        return told is None or cover.takes(message, told.tokens, sent.total)

    def slope(self, beside: Size, cover: Cover = ALL_REPORTS) -> float | None:
        """What the provider counts for each token of our estimate: by how much reports grow.

        From one to the next of a model, only the messages between them are new; tools and
        instructions, of which we may not know all, are in both. None where no two reports can be
        compared, or they go up and down: then they are about several windows.
        """
        grown = weight = media = falls = 0
        latest: dict[str | None, tuple[int, int]] = {}
        for place, tokens, model in self._readings(beside, cover):
            before, less = latest.get(model, (place, tokens))
            latest[model] = place, tokens
            if tokens < less:  # cut, or compacted: what was reported before is about another list
                grown, weight, media, falls = 0, 0, 0, falls + 1
            elif tokens > less:
                grown += tokens - less
                weight += self._sizes.weight_of(self.messages[before:place])
                media += self._before[place].media - self._before[before].media
        written = weight - media
        if falls > 1 or grown <= media or written <= media:
            return None
        slope = (grown - media) / written
        return max(slope, _LEAST_SLOPE if written >= _STEADY else 1.0)

    def _readings(self, beside: Size, cover: Cover) -> Iterator[tuple[int, int, str | None]]:
        """How many tokens of what comes before a place were reported, and by which model."""
        for place in self._reports[bisect_right(self._reports, cover.since - 1) :]:
            message = self.messages[place]
            told = reading(message)
            if told is None:
                continue
            end = place if told.is_prompt else place + 1
            if cover.takes(message, told.tokens, (self._before[end] + beside).total):
                yield end, told.tokens, None if message.origin is None else message.origin.model


def estimated(counted: Counted) -> int:
    """The tokens of what came after the anchor."""
    anchor, (text, frame, media) = counted
    if anchor is None:
        return counted.rest.total
    return ceil(text * anchor.ratio + frame * min(anchor.ratio, anchor.frame)) + media


def place_of(id: str, messages: Sequence[Message]) -> int | None:
    """The place of the last message of an id; looked for from the end, which is near it."""
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].id == id:
            return place
    return None
