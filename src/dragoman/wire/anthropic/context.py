"""What the functions that read or write one body have in common."""

from __future__ import annotations

from typing import Any

from dragoman.model.parts import Origin, Part
from dragoman.wire.anthropic.allowance import Allowance
from dragoman.wire.call_ids import CallIds
from dragoman.wire.losses import Action, Loss, Repair
from dragoman.wire.schemas import ANTHROPICS, Profiles, SentSchemas

NAME = "anthropic"
HERE = Origin(dialect=NAME)
"""On parts of requests whose opaque state may go back to this dialect only (I1)."""

Block = dict[str, Any]
"""A content block, or any other object of the wire."""


def is_ours(origin: Origin | None) -> bool:
    """Whether something is known to come from this dialect."""
    return origin is not None and origin.dialect == NAME


class Decoding:
    """A body being read: the origin of its parts, and the ids of its tool calls."""

    __slots__ = ("calls", "has_envelopes", "origin")

    def __init__(self, origin: Origin | None, calls: CallIds) -> None:
        self.origin = origin
        """For parts with opaque state; None where the message says it for all its parts."""
        self.has_envelopes = False
        """Whether the message being read holds another provider's state; see `unsealing`."""
        self.calls = calls


class Encoding:
    """A body being written: what it could not say, and where the writer is."""

    __slots__ = (
        "allowance", "is_strict", "item", "losses", "message", "origin", "part", "place",
        "profiles", "repairs", "schemas", "unthinking", "wire_ids",
    )  # fmt: skip

    def __init__(
        self, place: str, profiles: Profiles = ANTHROPICS, *, is_strict: bool = True
    ) -> None:
        self.losses: list[Loss] = []
        self.repairs: list[Repair] = []
        self.is_strict = is_strict
        """Whether settings that the vendor refuses together are fitted to each other."""
        self.profiles = profiles
        """What is taken of the schemas of tools."""
        self.schemas = SentSchemas(self.losses, self.repairs)
        self.allowance = Allowance()
        self.place = place
        """The path of a part, to be filled in with the numbers of its message and its own."""
        self.message = 0
        self.part = 0
        self.item: int | None = None
        self.origin: Origin | None = None
        """The message's origin, which its parts share unless they have their own."""
        self.unthinking: int | None = None
        """The message from which on there must be no thinking (W53)."""
        self.wire_ids: dict[str, str] = {}
        """What calls are called on the wire, where that is not their id."""

    def lose(self, reason: str, field: str = "") -> None:
        """Note that the part being written, or a field of it, is left out or changed."""
        path = self.place.format(self.message, self.part)
        inner = "" if self.item is None else f".content[{self.item}]"
        self.losses.append(Loss(f"{path}{inner}{field}", reason))

    def repair(self, rule: str, action: Action, reason: str) -> None:
        """Note that the part being written is put right."""
        path = self.place.format(self.message, self.part)
        self.repairs.append(Repair(path, rule, action, reason))

    def lose_at(self, path: str, reason: str) -> None:
        """Note that what stands at this path is left out or changed."""
        self.losses.append(Loss(path, reason))

    def origin_of(self, part: Part) -> Origin | None:
        """Where a part comes from: its own origin, or its message's."""
        return part.origin if part.origin is not None else self.origin

    def is_foreign(self, part: Part) -> bool:
        """Whether a part is known to come from another dialect."""
        origin = self.origin_of(part)
        return origin is not None and origin.dialect != NAME
