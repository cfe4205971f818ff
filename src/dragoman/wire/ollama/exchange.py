"""What a decoder and an encoder remember while they go through a conversation."""

from __future__ import annotations

from typing import Any

from msgspec import UnsetType

from dragoman.model.parts import Origin, Part
from dragoman.model.tools import ToolCall
from dragoman.wire.call_ids import CallIds
from dragoman.wire.losses import Loss, Repair
from dragoman.wire.ollama.spelling import is_own
from dragoman.wire.schemas import SentSchemas


class Incoming:
    """Where the parts came from, and which call a result answers."""

    __slots__ = ("calls", "names", "origin")

    def __init__(self, origin: Origin | None, calls: CallIds) -> None:
        self.origin = origin
        """Goes on parts that must not lose it; None where their message tells."""
        self.calls = calls
        self.names: dict[str, str] = {}
        """The names of the tools, by the ids of their calls."""

    def admit(
        self, name: str, wire_id: str | None, arguments: Any
    ) -> tuple[str, str | UnsetType | None]:
        """The id of a new call, and its `wire_id`."""
        found = self.calls.admit_named(name, wire_id, arguments)
        self.names[found[0]] = name
        return found


class Outgoing:
    """Gathers what could not be said, and what calls are called on the wire."""

    __slots__ = ("ids", "is_cut_off", "is_response", "losses", "names", "repairs",
                 "schemas", "takes_anything")  # fmt: skip

    def __init__(
        self, *, is_response: bool = False, is_cut_off: bool = False, takes_anything: bool = False
    ) -> None:
        self.is_response = is_response
        self.takes_anything = takes_anything
        """Whether nothing is known to be refused: what came here goes back as it came."""
        self.is_cut_off = is_cut_off
        """Whether the answer ended before the model was done."""
        self.losses: list[Loss] = []
        self.repairs: list[Repair] = []
        self.schemas = SentSchemas(self.losses, self.repairs)
        self.ids: dict[str, str | None] = {}
        self.names: dict[str, str] = {}

    def lose(self, path: str, reason: str) -> None:
        """Note what could not be said."""
        self.losses.append(Loss(path, reason))

    def lose_luggage(self, part: Part, path: str) -> None:
        """Note what a part carries besides its content: there is no place for it."""
        if part.cache is not None:
            self.lose(f"{path}.cache", "the server decides itself what it keeps of a prompt")
        if part.signature is not None:
            self.lose(f"{path}.signature", "another provider's seal has no place here")

    def call(self, call: ToolCall, origin: Origin | None) -> str | None:
        """Remember a call for its result; returns its id on the wire, if it has one there.

        An older server gives none: its own calls go back without (W103).
        """
        wire_id = call.wire_id
        is_ours = is_own(call.origin if call.origin is not None else origin)
        found = call.id if isinstance(wire_id, UnsetType) or not is_ours else wire_id
        self.ids[call.id] = found
        self.names[call.id] = call.name
        return found
