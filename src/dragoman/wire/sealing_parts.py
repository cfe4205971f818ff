"""State of the parts and choices of a stream while it is sealed."""

from __future__ import annotations

from dragoman.model.accumulate import GrowingPart
from dragoman.model.content import AnyPart
from dragoman.model.ids import new_id
from dragoman.model.parts import Origin, Text, Thinking
from dragoman.model.tools import ToolCallDelta
from dragoman.wire.fronts import Sealer, StateFields
from dragoman.wire.stream_encoding import unsent


class OpenPart:
    """A part in progress: its content so far, and what the client was shown."""

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
        self.state: AnyPart | None = None  # as already sealed
        self.final: AnyPart | None = None  # the complete part, from its stop event
        self._before = 0  # number of characters that are already sealed
        self._paused: Thinking | None = None
        self._sent = ""
        self._first = 0
        self._counted = 0

    def begin(self, shown: AnyPart) -> None:
        """Start showing the part; from now on the client gets each chunk."""
        self.is_begun = True
        self.shown = shown
        self._sent = shown.text if isinstance(shown, (Text, Thinking)) else ""
        self._first = len(self.grown.pieces)

    @property
    def is_flowing(self) -> bool:
        """Whether the last chunk was passed on as it was."""
        return self.is_begun and len(self.grown.pieces) > self._first

    def pause(self) -> Thinking:
        """End the thought so far, as something else follows; a continuation is a separate part."""
        thought = self.grown.built()
        assert isinstance(thought, Thinking)  # noqa: S101 - nothing else is paused
        self._before += len(thought.text)
        self._paused = thought
        self.grown = GrowingPart(thought.replace(text="", signature=None, data=None))
        self.is_begun = False
        return thought

    def whole(self) -> AnyPart:
        """The part, without what was already sealed."""
        final = self.final
        if final is None:
            return self.grown.built()
        if self._before and isinstance(final, Thinking):
            return final.replace(text=final.text[self._before :])
        return final

    def late_state(self, rest: AnyPart) -> Thinking | None:
        """A paused thought that only gained state since; None otherwise."""
        known = self._paused
        if known is None or self.is_begun or not isinstance(rest, Thinking) or rest.text:
            return None
        signature, data = rest.signature or known.signature, rest.data or known.data
        return rest.replace(text=known.text, signature=signature, data=data)

    @property
    def is_told(self) -> bool:
        """Whether the client was already shown all of it."""
        return self._paused is not None and not self.is_begun

    def has_told(self, text: str) -> bool:
        """Whether a text ends with what was sealed last."""
        whole = self.whole()
        return isinstance(whole, Thinking) and text[self._before :] == whole.text

    def unsent(self, text: str) -> str | None:
        """The rest of a text that the client was not sent; None if it was sent something else."""
        return unsent([self._sent, *self.grown.pieces[self._first :]], text)

    def uncounted(self) -> int:
        """The number of characters added since the last call."""
        fresh = self.grown.pieces[self._counted :]
        self._counted += len(fresh)
        return sum(map(len, fresh))


class _MessageId:
    """The id of a message, generated on first use."""

    __slots__ = ("_id",)

    def __init__(self) -> None:
        self._id = ""

    def __call__(self) -> str:
        self._id = self._id or new_id()
        return self._id


class OpenChoice:
    """One choice of the stream."""

    __slots__ = ("begun", "count", "ended", "has_told_beside", "ids", "number", "parts", "places",
                 "sealed", "sealer", "thought")  # fmt: skip

    def __init__(self, front: StateFields, number: int, origin: Origin | None) -> None:
        self.number = number
        self.sealer = Sealer(front, origin, _MessageId())
        self.parts: dict[int, OpenPart] = {}
        self.ended: dict[int, OpenPart] = {}  # may be stopped a second time
        self.begun: set[int] = set()
        self.sealed: dict[int, OpenPart] = {}
        self.ids: dict[int | None, str | None] = {}  # of calls that arrive in chunks
        self.count = 0  # number of parts so far
        self.places: list[int] = []  # the original part number of each part shown to the client
        self.thought: OpenPart | None = None  # the thought that the next part will interrupt
        self.has_told_beside = False  # whether calls beside the content were emitted

    def numbered(self) -> int:
        """Return the number for a new part."""
        self.count += 1
        return self.count - 1

    def is_new(self, delta: ToolCallDelta) -> bool:
        """Whether a delta begins a call, judged by its id and index."""
        if delta.index not in self.ids:
            return True
        known = self.ids[delta.index]
        return bool(delta.id) and known is not None and known != delta.id

    def rest(self, growing: OpenPart) -> None:
        """Record how much text was added."""
        if type(growing.shown) is Text:
            self.sealer.count_text(growing.uncounted())
