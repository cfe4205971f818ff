"""Calls of a response that was cut off before their arguments were complete (I7).

A client must not be able to run them. Where the wire has arguments as text, they stay as they
came; where it has objects, the call is left out, and the response ends as one that was cut off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.json_progress import is_beginning
from dragoman.model.parts import Thinking
from dragoman.model.responses import Choice, Response
from dragoman.model.tools import ToolCall
from dragoman.model.usage import FinishReason
from dragoman.wire.writing import Writing

_INSTEAD = {
    FinishReason.STOP: FinishReason.LENGTH,
    FinishReason.TOOL_CALLS: FinishReason.LENGTH,
    FinishReason.PAUSE: FinishReason.LENGTH,
    FinishReason.OTHER: FinishReason.LENGTH,
    FinishReason.REFUSAL: FinishReason.CONTENT_FILTER,  # where a refusal is a complete answer
}
LEFT_OUT = "a call truncated before its arguments were complete is left out"


def is_left_out(call: ToolCall, arguments: Mapping[str, Any] | None, writing: Writing) -> bool:
    """Whether a response must leave the current part out, which is reported.

    `arguments` are those of the call if they are an object. A free text and missing arguments may
    be complete; if the response was cut off, it was within its last part.
    """
    if not writing.is_response or call.raw is None or not _is_cut(call, arguments, writing):
        return False
    writing.has_cut_calls = True
    writing.lose_here(LEFT_OUT)
    return True


def _is_cut(call: ToolCall, arguments: Mapping[str, Any] | None, writing: Writing) -> bool:
    if call.kind == "custom" or not call.raw or call.raw.isspace():
        origin = writing.origin  # not that of the part, which an envelope may have changed
        is_own = origin is not None and origin.dialect == writing.target.dialect
        return writing.is_cut_off and writing.part == writing.last and not is_own
    return arguments is None and (writing.is_cut_off or is_beginning(call.raw_arguments))


def begin_choice(choice: Choice, writing: Writing) -> None:
    """Take note of how a choice ends, before its parts are written."""
    writing.is_cut_off = choice.finish is not None and choice.finish.is_cut_off
    parts = choice.message.parts
    writing.last = max((n for n, part in enumerate(parts) if not _is_state(part)), default=-1)
    writing.has_cut_calls = False


def _is_state(part: AnyPart) -> bool:
    """Whether a part is an envelope or sealed state, which may follow what it belongs to."""
    return isinstance(part, Thinking) and not part.text


def finish_beside(finish: FinishReason | None, writing: Writing) -> FinishReason | None:
    """The finish reason of a choice whose parts were written: cut off, if one of its calls was."""
    return cut_finish(finish) if writing.has_cut_calls else finish


def cut_finish(finish: FinishReason | None) -> FinishReason:
    """The finish reason of a choice that was cut off within a call, whatever was told."""
    return FinishReason.LENGTH if finish is None else _INSTEAD.get(finish, finish)


def ends_within_part(response: Response) -> bool:
    """Whether a choice without a finish reason ends within a call or a thought."""
    return any(map(_ends_within, response.choices))


def _ends_within(choice: Choice) -> bool:
    parts = choice.message.parts
    if choice.finish is not None or choice.finish_raw is not None or not parts:
        return False
    last = parts[-1]
    is_thought = isinstance(last, Thinking) and not (last.signature or last.data)
    return is_thought or any(map(is_unfinished, choice.message.tool_calls))


def is_unfinished(call: ToolCall) -> bool:
    """Whether the arguments of a call have begun and not ended."""
    return call.kind != "custom" and call.raw is not None and is_beginning(call.raw)
