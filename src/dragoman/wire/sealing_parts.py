"""The parts of a stream that is being sealed, while they grow."""

from __future__ import annotations

from dragoman.model.accumulate import GrowingPart
from dragoman.model.content import AnyPart
from dragoman.model.ids import new_id
from dragoman.model.parts import Origin, Text, Thinking
from dragoman.model.tools import ToolCallDelta
from dragoman.wire.fronts import Sealer, StateFields
from dragoman.wire.stream_encoding import unsent


class OpenPart:
    """A part on its way through: what it has become, and what the client has seen of it."""

    __slots__ = ("_before", "_counted", "_first", "_paused", "_sent", "final", "grown", "index",
                 "is_begun", "number", "place", "shown", "state")  # fmt: skip

    def __init__(
        self, index: int, number: int, part: AnyPart, place: tuple[int, int] | None
    ) -> None:
        self.index = index
        self.number = number  # in the message
        self.grown = GrowingPart(part)
        self.place = place
        self.shown: AnyPart = part
        self.is_begun = False
        self.state: AnyPart | None = None  # as it was sealed already
        self.final: AnyPart | None = None  # the last word on it
        self._before = 0  # characters of it that are sealed already
        self._paused: Thinking | None = None
        self._sent = ""
        self._first = 0
        self._counted = 0

    def begin(self, shown: AnyPart) -> None:
        """The client is shown the part; from now on it gets each piece."""
        self.is_begun = True
        self.shown = shown
        self._sent = shown.text if isinstance(shown, (Text, Thinking)) else ""
        self._first = len(self.grown.pieces)

    def pause(self) -> Thinking:
        """The thought so far, since something else comes; more of it will be a part of its own."""
        thought = self.grown.built()
        assert isinstance(thought, Thinking)  # noqa: S101 - nothing else is paused
        self._before += len(thought.text)
        self._paused = thought
        self.grown = GrowingPart(thought.replace(text="", signature=None, data=None))
        self.is_begun = False
        return thought

    def whole(self) -> AnyPart:
        """All of it that has not been sealed yet."""
        final = self.final
        if final is None:
            return self.grown.built()
        if self._before and isinstance(final, Thinking):
            return final.replace(text=final.text[self._before :])
        return final

    def late_state(self, rest: AnyPart) -> Thinking | None:
        """A thought that was paused and had nothing to add but its state; None where it is not."""
        known = self._paused
        if known is None or self.is_begun or not isinstance(rest, Thinking) or rest.text:
            return None
        signature, data = rest.signature or known.signature, rest.data or known.data
        return rest.replace(text=known.text, signature=signature, data=data)

    @property
    def is_told(self) -> bool:
        """Whether the client has had all of it, in what came before."""
        return self._paused is not None and not self.is_begun

    def has_told(self, text: str) -> bool:
        """Whether the end of a text is what was sealed last."""
        whole = self.whole()
        return isinstance(whole, Thinking) and text[self._before :] == whole.text

    def unsent(self, text: str) -> str | None:
        """What the client has not been sent of a text; None where it was sent something else."""
        return unsent([self._sent, *self.grown.pieces[self._first :]], text)

    def uncounted(self) -> int:
        """How many characters have come since this was asked last."""
        fresh = self.grown.pieces[self._counted :]
        self._counted += len(fresh)
        return sum(map(len, fresh))


class _MessageId:
    """The id of a message, made on first need."""

    __slots__ = ("_id",)

    def __init__(self) -> None:
        self._id = ""

    def __call__(self) -> str:
        self._id = self._id or new_id()
        return self._id


class OpenChoice:
    """One answer of the stream."""

    __slots__ = ("begun", "count", "ended", "has_told_beside", "ids", "number", "parts", "places",
                 "sealed", "sealer", "thought")  # fmt: skip

    def __init__(self, front: StateFields, number: int, origin: Origin | None) -> None:
        self.number = number
        self.sealer = Sealer(front, origin, _MessageId())
        self.parts: dict[int, OpenPart] = {}
        self.ended: dict[int, OpenPart] = {}  # and may be said to have ended once more
        self.begun: set[int] = set()
        self.sealed: dict[int, OpenPart] = {}
        self.ids: dict[int | None, str | None] = {}  # of calls that come in pieces
        self.count = 0  # the parts so far
        self.places: list[int] = []  # of what the client is shown, which part each is
        self.thought: OpenPart | None = None  # that the next part interrupts
        self.has_told_beside = False  # of calls that stand beside the content

    def numbered(self) -> int:
        """The number of the part that begins now."""
        self.count += 1
        return self.count - 1

    def is_new(self, delta: ToolCallDelta) -> bool:
        """Whether a delta begins a call, as far as its id and its place tell."""
        if delta.index not in self.ids:
            return True
        known = self.ids[delta.index]
        return bool(delta.id) and known is not None and known != delta.id

    def rest(self, growing: OpenPart) -> None:
        """Note how much more has been said."""
        if type(growing.shown) is Text:
            self.sealer.count_text(growing.uncounted())
