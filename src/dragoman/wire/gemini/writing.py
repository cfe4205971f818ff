"""What an encoder keeps in mind while it writes one body."""

from __future__ import annotations

from typing import Any

from dragoman.model.parts import Origin, Part
from dragoman.model.tools import ToolCall
from dragoman.wire.gemini.trace import NAME
from dragoman.wire.losses import Action, Loss, Repair
from dragoman.wire.schemas import SentSchemas
from dragoman.wire.target import Target

_ANYONES = Target(dialect=NAME)


class Writing:
    """The calls written so far, which results refer to, and what could not be said."""

    __slots__ = ("_called", "at", "calls", "hoisted", "is_response", "losses", "order", "origin",
                 "place", "repairs", "schemas", "target")  # fmt: skip

    def __init__(self, place: str, *, is_response: bool = False, target: Target = _ANYONES) -> None:
        self.place = place
        """Where the messages stand in the value that is written; `{}` stands for their index."""
        self.is_response = is_response
        """Whether a response is written: it has a place for citations, and its thinking is read by
        people, whoever thought it."""
        self.target = target
        """Who is written to; a response is for anyone who speaks the dialect."""
        self.origin: Origin | None = None
        """Of the message that is being written."""
        self.at: tuple[int, int] = (0, 0)
        """The message and part that are being written."""
        self.calls: dict[str, ToolCall] = {}
        self.order: dict[str, int] = {}
        """Of the calls, by their ids."""
        self._called = 0
        self.hoisted: list[Any] = []
        """Media of tools' results that have to stand behind the results (W96)."""
        self.losses: list[Loss] = []
        self.repairs: list[Repair] = []
        self.schemas = SentSchemas(self.losses, self.repairs)

    def add_call(self, call: ToolCall) -> None:
        """Remember a call: results may follow."""
        self.calls[call.id] = call
        self.order[call.id] = self._called
        self._called += 1

    def is_own(self, part: Part) -> bool:
        """Whether a part came from this dialect, or was put there by hand."""
        origin = part.origin if part.origin is not None else self.origin
        return origin is None or origin.dialect == NAME

    def is_verifiable(self, part: Part) -> bool:
        """Whether a signature may be sent: it was made there (W86), or put there by hand."""
        return self.target.has_made(part.origin if part.origin is not None else self.origin)

    def lose(self, path: str, reason: str) -> None:
        """Record a loss."""
        self.losses.append(Loss(path, reason))

    def lose_of_message(self, index: int, reason: str, field: str = "") -> None:
        """Record a loss in the message of that index, or in a field of it."""
        self.lose(f"{self.place.format(index)}{field}", reason)

    def lose_part(self, message: int, index: int, reason: str, inside: str = "") -> None:
        """Record a loss in a part; the message of index -1 is the system prompt."""
        place = "system" if message < 0 else f"{self.place.format(message)}.parts"
        self.lose(f"{place}[{index}]{inside}", reason)

    def repair_part(self, rule: str, action: Action, reason: str) -> None:
        """Record a repair of the part that is being written."""
        message, index = self.at
        self.repairs.append(
            Repair(f"{self.place.format(message)}.parts[{index}]", rule, action, reason)
        )

    def lose_content(self, index: int, reason: str) -> None:
        """Record a loss in the content of the result that is being written."""
        self.lose_part(*self.at, reason, f".content[{index}]")
