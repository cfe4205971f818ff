"""What a decoder remembers while it goes through a body."""

from __future__ import annotations

from dragoman.model.parts import Origin
from dragoman.wire.call_ids import CallIds


class Reading:
    """A body that is being read: where its parts come from, and the ids of its calls.

    A dialect with more to remember has a class derived from it, in its `dialect` module.
    """

    __slots__ = ("calls", "has_envelopes", "origin")

    def __init__(self, origin: Origin | None, calls: CallIds) -> None:
        self.origin = origin
        """Goes on parts that must not lose it; None where their message says it for all."""
        self.calls = calls
        self.has_envelopes = False
        """Whether the message being read holds another provider's state; see `unsealing`."""
