"""Ids of tool calls as the target takes them, the same for call and result (I4, I5).

An id that the target accepts stays. Any other becomes a hash of itself: the same each time, so
that what is sent again has the same bytes, and different for different ids.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from msgspec import UNSET

from dragoman.model.content import AnyPart
from dragoman.model.messages import Message
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.wire.losses import Note, Repair
from dragoman.wire.target import Target

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_PREFIX = "call_"
_DIGITS = 24  # of base 36: 124 bits, no two ids alike
_ASSISTANT = Role.ASSISTANT


def with_accepted_ids(
    messages: tuple[Message, ...],
    target: Target,
    calls: Iterable[ToolCall],
    notes: list[Note],
    kept: frozenset[str] = frozenset(),
) -> tuple[Message, ...]:
    """Messages in which every tool call, of which these are all, has an id that is accepted.

    Ids that are to be kept stay as they are.
    """
    if _are_accepted([call for call in calls if call.id not in kept] if kept else calls, target):
        return messages
    projection = _Projection(target, notes, kept)
    return tuple(projection.message(message, index) for index, message in enumerate(messages))


def _are_accepted(calls: Iterable[ToolCall], target: Target) -> bool:
    ids = [call.id for call in calls]
    distinct = set(ids)
    if target.has_unique_tool_ids and len(distinct) != len(ids):
        return False
    return target.accepts_ids(distinct)


class _Projection:
    """Ids of one conversation, in the order of its calls."""

    def __init__(self, target: Target, notes: list[Note], kept: frozenset[str]) -> None:
        self._target = target
        self._kept = kept
        self._notes = notes
        self._used: set[str] = set()
        self._current: dict[str, str] = {}

    def message(self, message: Message, index: int) -> Message:
        parts = tuple(self._part(part) for part in message.parts)
        changed = [place for place, part in enumerate(parts) if part is not message.parts[place]]
        if not changed:
            return message
        self._notes.extend(
            Repair(f"messages[{index}].parts[{place}]", "I4", "renamed", "an id that is accepted")
            for place in changed
        )
        return message.replace_unchecked(parts=parts)

    def _part(self, part: AnyPart) -> AnyPart:
        if isinstance(part, ToolCall):
            accepted = self._accepted(part.id)
            return (
                part if accepted == part.id else part.replace_unchecked(id=accepted, wire_id=UNSET)
            )
        if isinstance(part, ToolResult):
            accepted = self._current.get(part.call_id) or self._accepted(part.call_id)
            return part if accepted == part.call_id else part.replace_unchecked(call_id=accepted)
        return part

    def _accepted(self, tool_id: str) -> str:
        """An id for the next call that has this one; results that follow are for it."""
        if tool_id in self._kept:
            return tool_id
        found = tool_id
        attempt = 0
        is_taken = self._used if self._target.has_unique_tool_ids else frozenset[str]()
        while not self._target.accepts_id(found) or found in is_taken:
            found = _hashed(f"{tool_id}\0{attempt}", self._target)
            attempt += 1
        self._used.add(found)
        self._current[tool_id] = found
        return found


def _hashed(text: str, target: Target) -> str:
    number = int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest(), "big")
    digits = ""
    for _ in range(_DIGITS):
        number, digit = divmod(number, len(_ALPHABET))
        digits += _ALPHABET[digit]
    # A target whose ids are short and plain (Mistral's have nine characters) gets no prefix.
    candidate = f"{_PREFIX}{digits}"[: target.tool_id_length]
    return candidate if target.accepts_id(candidate) else digits[: target.tool_id_length]
