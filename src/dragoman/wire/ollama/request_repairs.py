"""What Ollama's server would refuse: arguments of calls that are a text (W102)."""

from __future__ import annotations

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.requests import Request
from dragoman.model.tools import ToolCall
from dragoman.wire.fitting.steps import Step, with_changed_parts
from dragoman.wire.losses import Note, Repair
from dragoman.wire.ollama.dialect import NAME
from dragoman.wire.ollama.tools import arguments_of
from dragoman.wire.overlay import spelled, without_spelling
from dragoman.wire.target import Target

_TEXT = "arguments that were a text are sent as an object"


def with_object_arguments(request: Request, _target: Target, notes: list[Note]) -> Request:
    """With objects for arguments that came as a text, which many a client writes."""

    def as_object(part: AnyPart, path: str) -> AnyPart:
        if type(part) is not ToolCall or part.extras is EMPTY or not _is_text(part):
            return part
        notes.append(Repair(path, "W102", "retyped", _TEXT))
        return part.replace_unchecked(extras=without_spelling(part.extras, NAME))

    messages = with_changed_parts(request.messages, as_object)
    return request if messages is request.messages else request.replace_trusted(messages=messages)


def _is_text(call: ToolCall) -> bool:
    """Whether the arguments would go back as the text that they came as."""
    body = spelled({"function": {"arguments": arguments_of(call)}}, call.extras, NAME)
    return isinstance(body["function"].get("arguments"), str)


STEPS = (
    Step(with_object_arguments, ("is_strict",), lambda seen, to: to.is_strict and bool(seen.calls)),
)
"""What fitting sees to for this dialect alone."""
