"""What an encoder remembers while it writes a body: where it is, and what it has to report."""

from __future__ import annotations

from dragoman.model.parts import Origin, Part
from dragoman.wire.context import NOTHING, Context
from dragoman.wire.losses import Action, Loss, Repair
from dragoman.wire.schemas import SentSchemas
from dragoman.wire.target import Target

_PART = "messages[{}].parts[{}]"


class Writing:
    """A body that is being written: for whom, the part that it is at, its losses and repairs.

    A dialect with more to remember has a class derived from it, in its `dialect` module.
    """

    __slots__ = (
        "_schemas",
        "is_cut_off",
        "is_response",
        "item",
        "losses",
        "message",
        "origin",
        "part",
        "place",
        "repairs",
        "target",
        "wire_ids",
    )  # fmt: skip

    def __init__(
        self,
        target: Target,
        *,
        place: str = _PART,
        is_response: bool = False,
        is_cut_off: bool = False,
    ) -> None:
        self.target = target
        """Who is written to; a response is for anyone who speaks the dialect."""
        self.is_response = is_response
        self.is_cut_off = is_cut_off
        """Whether the answer ended before the model was done (I7)."""
        self.losses: list[Loss] = []
        self.repairs: list[Repair] = []
        self._schemas: SentSchemas | None = None
        self.wire_ids: dict[str, str | None] = {}
        """By a call's id: what the wire calls it, where that differs; None: nothing."""
        self.place = place
        """The path of a part, to be filled in with the numbers of its message and its own."""
        self.message, self.part = 0, 0
        self.item: int | None = None
        """Within the content of a tool's result."""
        self.origin: Origin | None = None
        """The message's origin, which its parts share unless they have their own."""

    @property
    def schemas(self) -> SentSchemas:
        """The schemas that are sent, and what has to be undone of them in the answer."""
        if self._schemas is None:
            self._schemas = SentSchemas(self.losses, self.repairs)
        return self._schemas

    @property
    def context(self) -> Context:
        """What has to be undone in the answer."""
        return NOTHING if self._schemas is None else self._schemas.context

    # --- what is to be reported

    def lose(self, path: str, reason: str) -> None:
        """Note that what stands at a path is left out or changed."""
        self.losses.append(Loss(path, reason))

    def repair(self, path: str, rule: str, action: Action, reason: str) -> None:
        """Note that what stands at a path is put right for the target."""
        self.repairs.append(Repair(path, rule, action, reason))

    def lose_here(self, reason: str, field: str = "") -> None:
        """Note that the part being written, or a field of it, is left out or changed."""
        self.losses.append(Loss(f"{self.here}{field}", reason))

    def repair_here(self, rule: str, action: Action, reason: str) -> None:
        """Note that the part being written is put right for the target."""
        self.repairs.append(Repair(self.here, rule, action, reason))

    @property
    def here(self) -> str:
        """The path of the part that is being written."""
        path = self.place.format(self.message, self.part)
        return path if self.item is None else f"{path}.content[{self.item}]"

    # --- whose a part is

    def origin_of(self, part: Part) -> Origin | None:
        """Where a part comes from: its own origin, or its message's."""
        return part.origin if part.origin is not None else self.origin

    def is_own(self, part: Part) -> bool:
        """Whether a part came from this dialect."""
        origin = self.origin_of(part)
        return origin is not None and origin.dialect == self.target.dialect

    def is_foreign(self, part: Part) -> bool:
        """Whether a part is known to come from another dialect; one made by hand is not."""
        origin = self.origin_of(part)
        return origin is not None and origin.dialect != self.target.dialect
