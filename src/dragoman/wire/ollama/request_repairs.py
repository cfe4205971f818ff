"""Repairs for Ollama only: call arguments sent as a JSON string become an object (W102)."""

from __future__ import annotations

from dragoman.model.content import AnyPart
from dragoman.model.requests import Request
from dragoman.model.tools import ToolCall
from dragoman.wire.fitting.settings import sampling_within
from dragoman.wire.fitting.steps import Contents, Step, with_changed_parts
from dragoman.wire.losses import Note, Repair
from dragoman.wire.ollama.dialect import NAME, RANGES
from dragoman.wire.ollama.tools import arguments_of
from dragoman.wire.overlay import overlay_keys, spelled, without_spelling
from dragoman.wire.target import Target

_OWN_EXTRAS = overlay_keys(NAME)
_REASON = "arguments given as a JSON string are sent as an object"


def with_object_arguments(request: Request, _target: Target, notes: list[Note]) -> Request:
    """Replace arguments given as a JSON string, as many clients send them, by objects."""

    def as_object(part: AnyPart, path: str) -> AnyPart:
        if type(part) is not ToolCall or not _has_own_extras(part) or not _is_text(part):
            return part
        notes.append(Repair(path, "W102", "retyped", _REASON))
        return part.replace_unchecked(extras=without_spelling(part.extras, NAME))

    messages = with_changed_parts(request.messages, as_object)
    return request if messages is request.messages else request.replace_trusted(messages=messages)


def _has_own_extras(call: ToolCall) -> bool:
    """Whether the extras of a call may record its original form in this dialect."""
    return bool(call.extras) and not _OWN_EXTRAS.isdisjoint(call.extras)


def _is_text(call: ToolCall) -> bool:
    """Whether the arguments would be sent as a string, as they were received."""
    body = spelled({"function": {"arguments": arguments_of(call)}}, call.extras, NAME)
    return isinstance(body["function"].get("arguments"), str)


def _concerns(seen: Contents, target: Target) -> bool:
    return target.is_strict and bool(seen.calls)


def _finds(seen: Contents, _target: Target) -> bool:
    return any(map(_has_own_extras, seen.calls))


STEPS = (
    sampling_within(RANGES),
    Step(with_object_arguments, ("is_strict",), _concerns, finds=_finds),
)
"""Fitting steps for this dialect only."""
