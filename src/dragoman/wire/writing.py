"""The state of an encoder while it writes a body: its position, losses and repairs."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from dragoman.model.parts import Origin, Part
from dragoman.model.requests import ThinkingConfig
from dragoman.wire.context import NOTHING, Context
from dragoman.wire.losses import Action, Loss, Repair
from dragoman.wire.schemas import SentSchemas
from dragoman.wire.target import Target

_PLAIN_SUMMARIES = (None, "auto", "none")
"""Summaries that say no more than whether thinking is shown."""
_PART = "messages[{}].parts[{}]"


class Writing:
    """A body being encoded: its target, the current part, and losses and repairs so far.

    A dialect with more state has a subclass in its `dialect` module.
    """

    __slots__ = (
        "_schemas",
        "has_cut_calls",
        "is_cut_off",
        "is_response",
        "item",
        "last",
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
        """The target; for a response, the dialect's default."""
        self.is_response = is_response
        self.is_cut_off = is_cut_off
        """Whether the response was truncated (I7)."""
        self.has_cut_calls = False
        """Whether a call was left out because it was truncated."""
        self.last = -1
        """The number of the response's last part."""
        self.losses: list[Loss] = []
        self.repairs: list[Repair] = []
        self._schemas: SentSchemas | None = None
        self.wire_ids: dict[str, str | None] = {}
        """Wire ids by call id, where they differ; None: the call has no id on the wire."""
        self.place = place
        """Template for the path of a part, filled with the message number and part number."""
        self.message, self.part = 0, 0
        self.item: int | None = None
        """The position within the content of a tool's result."""
        self.origin: Origin | None = None
        """The message's origin, which its parts share unless they have their own."""

    @property
    def schemas(self) -> SentSchemas:
        """The schemas that are sent, and how to undo their changes in the response."""
        if self._schemas is None:
            self._schemas = SentSchemas(self.losses, self.repairs)
        return self._schemas

    @property
    def context(self) -> Context:
        """What must be undone in the response."""
        return NOTHING if self._schemas is None else self._schemas.context

    # --- reports

    def lose(self, path: str, reason: str) -> None:
        """Report that the thing at a path is left out or changed."""
        self.losses.append(Loss(path, reason))

    def repair(self, path: str, rule: str, action: Action, reason: str) -> None:
        """Report that the thing at a path is repaired for the target."""
        self.repairs.append(Repair(path, rule, action, reason))

    def lose_summary(self, config: ThinkingConfig) -> None:
        """Report the style of a summary, for a dialect that can only show or hide thinking."""
        if config.summary not in _PLAIN_SUMMARIES:
            self.lose("thinking.summary", "summaries can only be shown or hidden")

    def lose_here(self, reason: str, field: str = "") -> None:
        """Report that the current part, or a field of it, is left out or changed."""
        self.losses.append(Loss(f"{self.here}{field}", reason))

    def lose_field(self, field: str, reason: str) -> None:
        """Report that a field of the current part is left out or changed."""
        self.losses.append(Loss(f"{self.here}.{field}", reason))

    def leave_out(self, reason: str) -> UnsetType:
        """Report that the current part is left out, unless that was done; returns `UNSET`."""
        if reason:
            self.losses.append(Loss(self.here, reason))
        return UNSET

    def repair_here(self, rule: str, action: Action, reason: str) -> None:
        """Report that the current part is repaired for the target."""
        self.repairs.append(Repair(self.here, rule, action, reason))

    @property
    def here(self) -> str:
        """The path of the current part."""
        path = self.place.format(self.message, self.part)
        return path if self.item is None else f"{path}.content[{self.item}]"

    # --- origin of parts

    def origin_of(self, part: Part) -> Origin | None:
        """The origin of a part: its own, or its message's."""
        return part.origin if part.origin is not None else self.origin

    def is_own(self, part: Part) -> bool:
        """Whether a part came from this dialect."""
        origin = self.origin_of(part)
        return origin is not None and origin.dialect == self.target.dialect

    def is_foreign(self, part: Part) -> bool:
        """Whether a part is known to come from another dialect; one without an origin is not."""
        origin = self.origin_of(part)
        return origin is not None and origin.dialect != self.target.dialect
