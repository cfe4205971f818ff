"""The state of a decoder while it reads a body."""

from __future__ import annotations

from dragoman.model.parts import Origin
from dragoman.wire.call_ids import CallIds


class Reading:
    """The origin of the parts in a body, and the ids of its calls.

    A dialect with more state has a subclass in its `dialect` module.
    """

    __slots__ = ("calls", "has_envelopes", "origin")

    def __init__(self, origin: Origin | None, calls: CallIds) -> None:
        self.origin = origin
        """Set on parts that must keep it; None if their message has it for all."""
        self.calls = calls
        self.has_envelopes = False
        """Whether the current message holds another provider's state; see `unsealing`."""
