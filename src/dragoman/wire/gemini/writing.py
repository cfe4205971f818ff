"""What an encoder keeps in mind while it writes one body."""

from __future__ import annotations

from dragoman.model.parts import Origin, Part
from dragoman.model.tools import ToolCall
from dragoman.wire.gemini.trace import NAME
from dragoman.wire.losses import Loss


class Writing:
    """The calls written so far, which results refer to, and what could not be said."""

    __slots__ = ("calls", "has_citations", "losses", "origin", "place")

    def __init__(self, place: str, *, has_citations: bool = False) -> None:
        self.place = place
        """Where the messages stand in the value that is written; `{}` stands for their index."""
        self.has_citations = has_citations
        """Whether the body has a place for citations: responses do."""
        self.origin: Origin | None = None
        """Of the message that is being written."""
        self.calls: dict[str, ToolCall] = {}
        self.losses: list[Loss] = []

    def is_own(self, part: Part) -> bool:
        """Whether opaque state may be sent: it was made here (W86), or put there by hand."""
        origin = part.origin if part.origin is not None else self.origin
        return origin is None or origin.dialect == NAME

    def lose(self, path: str, reason: str) -> None:
        """Record a loss."""
        self.losses.append(Loss(path, reason))

    def lose_of_message(self, index: int, reason: str) -> None:
        """Record a loss in the message of that index."""
        self.lose(self.place.format(index), reason)

    def lose_part(self, message: int, index: int, reason: str) -> None:
        """Record a loss in a part; the message of index -1 is the system prompt."""
        place = "system" if message < 0 else f"{self.place.format(message)}.parts"
        self.lose(f"{place}[{index}]", reason)
