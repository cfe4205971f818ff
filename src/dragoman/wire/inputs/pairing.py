"""Calls and results of messages that were read separately.

Each run of dicts is decoded for itself. Where its wire has no ids (W81, W103), the decoder makes
ids of its own, which may occur in another run as well, and results of a call in an earlier run
name no call at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dragoman.errors import InvalidInputError
from dragoman.model.content import AnyPart
from dragoman.model.messages import Message
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.wire.inputs.runs import Run, uses_tools


def paired(runs: Sequence[Run]) -> list[Message]:
    """The messages of all runs, their results with the ids of the calls that they answer."""
    return _Pairing(runs).messages


class _Pairing:
    """Goes through the runs of a conversation, in order."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.messages: list[Message] = []
        self._waiting: dict[str, ToolCall] = {}
        """The calls of the last message that had some, as far as they have no result."""
        self._given = frozenset(
            call.id
            for run in runs
            for message in run.messages
            for call in message.tool_calls
            if not _is_made(call, run)
        )
        """The ids of calls that were handed in."""
        self._taken = set(self._given)
        self._copies: Counter[str] = Counter()
        for run in runs:
            self._add(run)

    def _add(self, run: Run) -> None:
        if not uses_tools(run.messages):
            self.messages += run.messages
            return
        ids = {call.id: call.id for message in run.messages for call in message.tool_calls}
        for call in (call for message in run.messages for call in message.tool_calls):
            if _is_made(call, run):
                ids[call.id] = self._free(call.id)
        for message in run.messages:
            if message.tool_calls:
                self._waiting = {}
            parts = tuple(self._part(part, run, ids) for part in message.parts)
            is_same = all(new is old for new, old in zip(parts, message.parts, strict=True))
            self.messages.append(message if is_same else message.replace_unchecked(parts=parts))

    def _part(self, part: AnyPart, run: Run, ids: dict[str, str]) -> AnyPart:
        if isinstance(part, ToolCall):
            own = ids[part.id]
            call = part if own == part.id else part.replace_unchecked(id=own)
            self._waiting[own] = call
            return call
        if isinstance(part, ToolResult):
            answered = self._answered(part, run, ids)
            self._waiting.pop(answered, None)
            return part if answered == part.call_id else part.replace_unchecked(call_id=answered)
        return part

    def _answered(self, result: ToolResult, run: Run, ids: dict[str, str]) -> str:
        """The id of the call that a result answers: by its id, else by name and order."""
        if result.call_id in ids:
            return ids[result.call_id]
        if result.call_id in self._waiting:
            return result.call_id
        is_named = run.ids is None or result.call_id in run.ids
        # A result with an id can only answer a call whose own id nobody has seen.
        called = (
            call.id
            for call in self._waiting.values()
            if result.tool_name in (None, call.name) and not (is_named and call.id in self._given)
        )
        found = next(called, None)
        if found is not None:
            return found
        if not is_named and not result.call_id:
            msg = "a tool message needs the id of the call it answers; no call stands before it"
            raise InvalidInputError(msg)
        return result.call_id if is_named else self._free(result.call_id)

    def _free(self, id_: str) -> str:
        """The id, or one made from it where it is taken."""
        free = id_
        while free in self._taken:
            self._copies[id_] += 1
            free = f"{id_}_{self._copies[id_] + 1}"
        self._taken.add(free)
        return free


def _is_made(call: ToolCall, run: Run) -> bool:
    """Whether the decoder made up a call's id."""
    return run.ids is not None and call.id not in run.ids
