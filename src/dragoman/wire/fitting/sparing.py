"""Messages that came in the target's own dialect and stay as they came, among others that don't.

A conversation may be mixed: what a client sent, and what an agent, an editor or another provider
added. Each step of fitting then passes over the messages that are spared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import is_

from dragoman.model.messages import Message
from dragoman.model.requests import AnyTool
from dragoman.model.tools import ToolDefinition
from dragoman.wire.losses import Note
from dragoman.wire.target import Target

Messages = tuple[Message, ...]
Spares = Callable[[Message], bool]
Step = Callable[[Messages, Target, list[Note]], Messages]

NOBODY = Message.empty()
"""Stands for a message that is not there: it is never spared."""
_FIRST = "messages[0]"


def spare_nothing(_message: Message) -> bool:
    """The usual case: all messages are fitted."""
    return False


def spared(
    step: Step, messages: Messages, target: Target, notes: list[Note], spares: Spares
) -> Messages:
    """What a step makes of the messages that are not spared, one by one."""
    kept: list[Message] = []
    for index, message in enumerate(messages):
        if spares(message):
            kept.append(message)
            continue
        found: list[Note] = []
        kept += step((message,), target, found)
        notes += [
            note.replace(path=f"messages[{index}]{note.path.removeprefix(_FIRST)}")
            if note.path.startswith(_FIRST)
            else note
            for note in found
        ]
    same = len(kept) == len(messages) and all(map(is_, kept, messages))
    return messages if same else tuple(kept)


class Kept:
    """The ids and names that spared messages and the dialect's own tools use: they stay."""

    def __init__(
        self, messages: Iterable[Message], tools: Iterable[AnyTool], target: Target, spares: Spares
    ) -> None:
        self.ids: frozenset[str] = frozenset()
        self.names: frozenset[str] = frozenset()
        if spares is spare_nothing:
            return
        own = [message for message in messages if spares(message)]
        called = [call for message in own for call in message.tool_calls]
        results = [result for message in own for result in message.tool_results]
        self.ids = frozenset([*(c.id for c in called), *(r.call_id for r in results)])
        declared = [
            tool.name
            for tool in tools
            if isinstance(tool, ToolDefinition)
            and tool.origin is not None
            and target.has_made(tool.origin)
        ]
        self.names = frozenset([*(call.name for call in called), *declared])
