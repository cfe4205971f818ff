"""What Ollama's server would refuse: arguments of calls that are a text (W102)."""

from __future__ import annotations

from operator import is_

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.requests import Request
from dragoman.model.tools import ToolCall
from dragoman.wire.fitting.steps import Step
from dragoman.wire.losses import Note, Repair
from dragoman.wire.ollama.dialect import NAME
from dragoman.wire.ollama.tools import arguments_of
from dragoman.wire.overlay import spelled, without_spelling
from dragoman.wire.target import Target

_TEXT = "arguments that were a text are sent as an object"


def with_object_arguments(request: Request, target: Target, notes: list[Note]) -> Request:
    """With objects for arguments that came as a text, which many a client writes."""
    if not target.is_strict:
        return request
    messages = list(request.messages)
    for index, message in enumerate(messages):
        parts: list[AnyPart] = list(message.parts)
        for place, part in enumerate(parts):
            if type(part) is ToolCall and part.extras is not EMPTY and _is_text(part):
                parts[place] = part.replace_unchecked(extras=without_spelling(part.extras, NAME))
                path = f"messages[{index}].parts[{place}]"
                notes.append(Repair(path, "W102", "retyped", _TEXT))
                messages[index] = message.replace_unchecked(parts=tuple(parts))
    is_same = all(map(is_, messages, request.messages))
    return request if is_same else request.replace(messages=tuple(messages))


def _is_text(call: ToolCall) -> bool:
    """Whether the arguments would go back as the text that they came as."""
    body = spelled({"function": {"arguments": arguments_of(call)}}, call.extras, NAME)
    return isinstance(body["function"].get("arguments"), str)


STEPS = (Step(with_object_arguments, ("is_strict",), lambda seen, _: bool(seen.calls)),)
"""What fitting sees to for this dialect alone."""
