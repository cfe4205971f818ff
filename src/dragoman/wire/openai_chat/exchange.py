"""What a decoder and an encoder remember while they go through a conversation."""

from __future__ import annotations

from typing import Any

from dragoman.model.parts import Origin, Part
from dragoman.wire.call_ids import CallIds
from dragoman.wire.losses import Action, Loss, Repair
from dragoman.wire.openai_chat.spelling import is_own
from dragoman.wire.openai_chat.target import TARGET
from dragoman.wire.schemas import SentSchemas
from dragoman.wire.target import Target


class Incoming:
    """Where the parts came from, and the ids of the calls."""

    __slots__ = ("calls", "has_envelopes", "origin")

    def __init__(self, origin: Origin | None, calls: CallIds) -> None:
        self.origin = origin
        """Goes on parts that must not lose it; None where their message tells."""
        self.has_envelopes = False
        """Whether the message being read holds another provider's state; see `unsealing`."""
        self.calls = calls


class Outgoing:
    """Gathers what could not be said, the wire's ids of calls, and media on their way out."""

    __slots__ = ("hoisted", "is_cut_off", "is_response", "legacy", "losses", "repairs", "schemas",
                 "target", "wire_ids")  # fmt: skip

    def __init__(self, target: Target = TARGET, *, is_response: bool = False) -> None:
        self.target = target
        self.is_response = is_response
        self.is_cut_off = False
        """Whether the answer ended before the model was done (I7)."""
        self.losses: list[Loss] = []
        self.repairs: list[Repair] = []
        self.schemas = SentSchemas(self.losses, self.repairs)
        self.wire_ids: dict[str, str | None] = {}
        """By a call's own id: what the wire calls it, where that differs."""
        self.legacy: set[str] = set()
        """The calls that are written as `function_call`."""
        self.hoisted: list[dict[str, Any]] = []
        """Media out of tool results, waiting for a user message (W1)."""

    def lose(self, path: str, reason: str) -> None:
        """Note what could not be said."""
        self.losses.append(Loss(path, reason))

    def repair(self, path: str, rule: str, action: Action, reason: str) -> None:
        """Note what was put right for the target."""
        self.repairs.append(Repair(path, rule, action, reason))

    def lose_part(self, part: Part, path: str) -> None:
        """Note a part that has no place here."""
        self.lose(path, f"{type(part).__name__} has no place in this dialect here")

    def sees_as_own(self, part: Part, origin: Origin | None) -> bool:
        """Whether a part came from this dialect, by its own origin or its message's."""
        return is_own(part.origin if part.origin is not None else origin)
