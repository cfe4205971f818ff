"""What a decoder and an encoder remember while they go through a conversation."""

from __future__ import annotations

from typing import Any

from dragoman.model.ids import new_id
from dragoman.model.parts import Origin, Part
from dragoman.wire.losses import Loss
from dragoman.wire.openai_chat.spelling import is_own
from dragoman.wire.openai_chat.target import TARGET
from dragoman.wire.schemas import SentSchemas
from dragoman.wire.target import Target


class Incoming:
    """Gives every tool call of a conversation an id of its own, and finds it for the result.

    Servers leave ids out, send empty ones, or use one twice (I5). Such calls get a new id and
    keep the wire's; results go to the calls with their id in the order of those calls.
    """

    __slots__ = ("_answered", "_seen", "_waiting", "has_envelopes", "origin")

    def __init__(self, origin: Origin | None) -> None:
        self.origin = origin
        """Goes on parts that must not lose it; None where their message tells."""
        self.has_envelopes = False
        """Whether the message being read holds another provider's state; see `unsealing`."""
        self._seen: set[str] = set()
        self._answered: dict[str | None, str] = {}
        self._waiting: dict[str | None, list[str]] = {}

    def admit(self, wire_id: str | None) -> str:
        """The id of a call that has this one on the wire."""
        if wire_id and wire_id not in self._seen:
            self._seen.add(wire_id)
            return wire_id
        made = new_id("call_")
        waiting = self._waiting.get(wire_id)
        if waiting is None:
            # The call that had the id first may still wait for its result.
            is_open = wire_id and wire_id not in self._answered
            waiting = self._waiting[wire_id] = [str(wire_id)] if is_open else []
        waiting.append(made)
        return made

    def answer(self, wire_id: str | None) -> str:
        """The id of the call that a result with this id answers; empty where there is none."""
        if wire_id and not self._waiting:  # every id was there, once: as it should be
            self._answered[wire_id] = wire_id
            return wire_id
        waiting = self._waiting.get(wire_id)
        known = self._answered.get(wire_id) or wire_id or ""
        call_id = waiting.pop(0) if waiting else known
        self._answered[wire_id] = call_id
        return call_id


class Outgoing:
    """Gathers what could not be said, the wire's ids of calls, and media on their way out."""

    __slots__ = ("hoisted", "is_cut_off", "is_response", "legacy", "losses", "schemas", "target",
                 "wire_ids")  # fmt: skip

    def __init__(self, target: Target = TARGET, *, is_response: bool = False) -> None:
        self.target = target
        self.is_response = is_response
        self.is_cut_off = False
        """Whether the answer ended before the model was done (I7)."""
        self.losses: list[Loss] = []
        self.schemas = SentSchemas(self.losses)
        self.wire_ids: dict[str, str | None] = {}
        """By a call's own id: what the wire calls it, where that differs."""
        self.legacy: set[str] = set()
        """The calls that are written as `function_call`."""
        self.hoisted: list[dict[str, Any]] = []
        """Media out of tool results, waiting for a user message (W1)."""

    def lose(self, path: str, reason: str) -> None:
        """Note what could not be said."""
        self.losses.append(Loss(path, reason))

    def lose_part(self, part: Part, path: str) -> None:
        """Note a part that has no place here."""
        self.lose(path, f"{type(part).__name__} has no place in this dialect here")

    def sees_as_own(self, part: Part, origin: Origin | None) -> bool:
        """Whether a part came from this dialect, by its own origin or its message's."""
        return is_own(part.origin if part.origin is not None else origin)
