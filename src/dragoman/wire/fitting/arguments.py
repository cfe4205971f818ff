"""Arguments of earlier calls: a text that is no JSON would poison the conversation (I6).

Some targets read them again and take nothing but an object (W114, C3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import is_

import msgspec

from dragoman.model.content import AnyPart
from dragoman.model.messages import Message
from dragoman.model.tools import ToolCall
from dragoman.wire.losses import Note, Repair
from dragoman.wire.target import Target

TEXT_ARGUMENT = "input"
"""The name under which a text that is no object stands in one."""
NOT_AN_OBJECT = "arguments that are not a JSON object were wrapped in one"
NO_ARGUMENTS = "{}"
"""How a call without any is written where arguments are a text."""
_SKIM = msgspec.json.Decoder(msgspec.Raw).decode  # sees whether it is JSON, and makes nothing of it
Messages = tuple[Message, ...]


def with_readable_arguments(messages: Messages, target: Target, losses: list[Note]) -> Messages:
    """Messages in which every call has JSON for its arguments, or an object where that counts."""
    is_readable = _is_object if target.parses_arguments else _is_json
    changed: list[Message] = []
    for index, message in enumerate(messages):
        parts = tuple([_readable(part, is_readable) for part in message.parts])
        for place, (new, old) in enumerate(zip(parts, message.parts, strict=True)):
            if new is not old:
                path = f"messages[{index}].parts[{place}]"
                losses.append(Repair(path, "I6", "retyped", NOT_AN_OBJECT))
        is_same = all(map(is_, parts, message.parts))
        changed.append(message if is_same else message.replace_unchecked(parts=parts))
    return messages if all(map(is_, changed, messages)) else tuple(changed)


def _is_object(call: ToolCall) -> bool:
    return call.object_arguments() is not None


def _is_json(call: ToolCall) -> bool:
    """Whether the arguments are JSON of any kind; nothing at all is a tool without parameters."""
    raw = call.raw
    if raw is None or is_blank(raw):
        return True
    try:
        _SKIM(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return False
    return True


def is_blank(raw: str) -> bool:
    """Whether arguments are none: some models write nothing for a tool without parameters."""
    return not raw or raw.isspace()


def are_readable(calls: Iterable[ToolCall], target: Target) -> bool:
    """Whether there is nothing to do: all of them are, or the target is believed to take any."""
    if not target.is_strict:
        return True
    is_readable = _is_object if target.parses_arguments else _is_json
    return all(is_readable(call) for call in calls if call.kind != "custom")


def _readable(part: AnyPart, is_readable: Callable[[ToolCall], bool]) -> AnyPart:
    if not isinstance(part, ToolCall) or part.kind == "custom" or is_readable(part):
        return part
    return part.replace_unchecked(raw=None, input={TEXT_ARGUMENT: part.raw_arguments})
