"""Arguments of earlier calls, for targets that parse them and take nothing but an object.

There, a text that is no JSON would poison the conversation (I6, W114, C3).
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import is_

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
Messages = tuple[Message, ...]


def with_readable_arguments(messages: Messages, target: Target, losses: list[Note]) -> Messages:
    """Messages in which every call has an object for its arguments, where the target parses them.

    Elsewhere the arguments are a text like any other, and stay what the model wrote.
    """
    if not target.parses_arguments:
        return messages
    changed: list[Message] = []
    for index, message in enumerate(messages):
        parts = tuple([_readable(part) for part in message.parts])
        for place, (new, old) in enumerate(zip(parts, message.parts, strict=True)):
            if new is not old:
                path = f"messages[{index}].parts[{place}]"
                losses.append(Repair(path, "I6", "retyped", NOT_AN_OBJECT))
        is_same = all(map(is_, parts, message.parts))
        changed.append(message if is_same else message.replace_unchecked(parts=parts))
    return messages if all(map(is_, changed, messages)) else tuple(changed)


def is_blank(raw: str) -> bool:
    """Whether arguments are none: some models write nothing for a tool without parameters."""
    return not raw or raw.isspace()


def are_readable(calls: Iterable[ToolCall], target: Target) -> bool:
    """Whether there is nothing to do."""
    return not target.parses_arguments or all(map(_is_readable, calls))


def _is_readable(call: ToolCall) -> bool:
    return call.kind == "custom" or call.object_arguments() is not None


def _readable(part: AnyPart) -> AnyPart:
    if not isinstance(part, ToolCall) or _is_readable(part):
        return part
    return part.replace_unchecked(raw=None, input={TEXT_ARGUMENT: part.raw_arguments})
