"""The parts of a stream that is being sealed, while they grow."""

from __future__ import annotations

from functools import cache

from dragoman.model.accumulate import GrowingPart
from dragoman.model.content import AnyPart
from dragoman.model.ids import new_id
from dragoman.model.parts import Origin, Text, Thinking
from dragoman.wire.fronts import Front, Sealer


class OpenPart:
    """A part on its way through: what it has become, and what the client has seen of it."""

    __slots__ = ("_counted", "_first", "_sent", "final", "grown", "index", "is_begun", "place",
                 "shown", "state")  # fmt: skip

    def __init__(self, index: int, part: AnyPart, place: tuple[int, int] | None) -> None:
        self.index = index
        self.grown = GrowingPart(part)
        self.place = place
        self.shown: AnyPart = part
        self.is_begun = False
        self.state: AnyPart | None = None  # as it was sealed already
        self.final: AnyPart | None = None  # the last word on it
        self._sent = 0
        self._first = 0
        self._counted = 0

    def begin(self, shown: AnyPart) -> None:
        """The client is shown the part; from now on it gets each piece."""
        self.is_begun = True
        self.shown = shown
        self._sent = len(shown.text) if isinstance(shown, (Text, Thinking)) else 0
        self._first = len(self.grown.pieces)

    @property
    def sent(self) -> int:
        """How many characters the client has."""
        return self._sent + sum(map(len, self.grown.pieces[self._first :]))

    def uncounted(self) -> int:
        """How many characters have come since this was asked last."""
        fresh = self.grown.pieces[self._counted :]
        self._counted += len(fresh)
        return sum(map(len, fresh))


class OpenChoice:
    """One answer of the stream."""

    __slots__ = ("begun", "ended", "ids", "number", "parts", "sealed", "sealer")

    def __init__(self, front: Front, number: int, origin: Origin | None) -> None:
        self.number = number
        self.sealer = Sealer(front, origin, cache(new_id))
        self.parts: dict[int, OpenPart] = {}
        self.ended: dict[int, OpenPart] = {}  # and may be said to have ended once more
        self.begun: set[int] = set()
        self.sealed: set[int] = set()
        self.ids: dict[int | None, str] = {}  # of calls that come in pieces

    def count(self, growing: OpenPart) -> None:
        """Note how much more has been said."""
        if type(growing.shown) is Text:
            self.sealer.count_text(growing.uncounted())
