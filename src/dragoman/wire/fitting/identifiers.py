"""Replaces call ids and tool names that the target doesn't accept (I4, I5, W6).

Accepted ids and names are kept. Any other id is replaced by its hash: deterministic, so that a
request sent again has the same bytes, and collision-free. A name gets an alias, which is undone in
the response.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

from msgspec import UNSET

from dragoman.model.content import AnyPart
from dragoman.model.requests import AnyTool, Request
from dragoman.model.tools import ToolCall, ToolDefinition, ToolResult
from dragoman.wire.context import NOTHING, Context
from dragoman.wire.digests import sha256
from dragoman.wire.fitting.steps import Messages, with_changed_parts
from dragoman.wire.flags import IdFlags
from dragoman.wire.losses import Note, Repair
from dragoman.wire.target import Target

RENAMED_IDS = "I4"
"""The rule for renaming ids."""
_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"
_PREFIX = "call_"
_DIGITS = 24  # in base 36: 124 bits, enough to avoid collisions


def with_accepted_ids(
    messages: Messages,
    target: Target,
    calls: Iterable[ToolCall],
    notes: list[Note],
    kept: frozenset[str] = frozenset(),
) -> Messages:
    """Replace the ids of tool calls that the target doesn't accept; `calls` are all calls.

    Ids in `kept` are not changed.
    """
    if _are_accepted([call for call in calls if call.id not in kept] if kept else calls, target):
        return messages
    return with_changed_parts(messages, _Projection(target, notes, kept).part)


def _are_accepted(calls: Iterable[ToolCall], target: Target) -> bool:
    ids = [call.id for call in calls]
    distinct = set(ids)
    if target.ids.must_be_unique and len(distinct) != len(ids):
        return False
    return target.ids.accepts_all(distinct)


class _Projection:
    """Maps the ids of one conversation, in the order of its calls."""

    def __init__(self, target: Target, notes: list[Note], kept: frozenset[str]) -> None:
        self._target = target
        self._kept = kept
        self._notes = notes
        self._used: set[str] = set()
        self._current: dict[str, str] = {}

    def part(self, part: AnyPart, path: str) -> AnyPart:
        """The part with an accepted id."""
        changed = part
        if isinstance(part, ToolCall):
            accepted = self._accepted(part.id)
            if accepted != part.id:
                changed = part.replace_unchecked(id=accepted, wire_id=UNSET)
        elif isinstance(part, ToolResult):
            accepted = self._current.get(part.call_id) or self._accepted(part.call_id)
            if accepted != part.call_id:
                changed = part.replace_unchecked(call_id=accepted)
        if changed is not part:
            self._notes.append(Repair(path, RENAMED_IDS, "renamed", "id not accepted by target"))
        return changed

    def _accepted(self, tool_id: str) -> str:
        """An accepted id for the next call with this id; the results that follow belong to it."""
        if tool_id in self._kept:
            return tool_id
        ids = self._target.ids
        found = accepted_id(tool_id, ids, self._used if ids.must_be_unique else frozenset())
        self._used.add(found)
        self._current[tool_id] = found
        return found


def accepted_id(tool_id: str, ids: IdFlags, used: Collection[str] = ()) -> str:
    """The id itself if it is accepted and unused, otherwise a hash of it."""
    found = tool_id
    attempt = 0
    while not ids.accepts(found) or found in used:
        found = _hashed(f"{tool_id}\0{attempt}", ids)
        attempt += 1
    return found


def _hashed(text: str, ids: IdFlags) -> str:
    number = int.from_bytes(sha256(text.encode("utf-8", "surrogatepass")).digest(), "big")
    digits = ""
    for _ in range(_DIGITS):
        number, digit = divmod(number, len(_ALPHABET))
        digits += _ALPHABET[digit]
    # A target with short alphanumeric ids (Mistral: nine characters) gets no prefix.
    candidate = f"{_PREFIX}{digits}"[: ids.max_length]
    return candidate if ids.accepts(candidate) else digits[: ids.max_length]


_REFUSED = re.compile(r"[^A-Za-z0-9_]+", re.ASCII)
_HASH = 8
_REASON = "name not accepted by target; restored in the response"


def with_accepted_names(
    request: Request,
    target: Target,
    calls: Iterable[ToolCall],
    notes: list[Note],
    kept: frozenset[str] = frozenset(),
) -> tuple[Request, Context]:
    """Replace tool names that the target refuses with aliases; also returns how to undo this.

    `calls` are all calls in the messages; names in `kept` are not changed.
    """
    used = [tool.name for tool in request.tools if isinstance(tool, ToolDefinition)]
    used += [call.name for call in calls]
    accepts = target.tools.accepts_name
    refused = [name for name in dict.fromkeys(used) if name not in kept and not accepts(name)]
    if not refused:
        return request, NOTHING
    aliases = {name: _alias(name, target) for name in refused}

    def named(item: AnyTool | AnyPart, path: str) -> AnyTool | AnyPart:
        changed = item
        if isinstance(item, (ToolDefinition, ToolCall)) and item.name in aliases:
            changed = item.replace_unchecked(name=aliases[item.name])
        elif isinstance(item, ToolResult) and item.tool_name in aliases:
            changed = item.replace_unchecked(tool_name=aliases[item.tool_name])
        if changed is not item:
            is_tool = isinstance(item, ToolDefinition)
            notes.append(Repair(f"{path}.name" if is_tool else path, "W6", "renamed", _REASON))
        return changed

    tools: Any = tuple([named(tool, f"tools[{i}]") for i, tool in enumerate(request.tools)])
    messages = with_changed_parts(request.messages, named)
    choice = request.tool_choice
    if choice is not None and not aliases.keys().isdisjoint(choice.names):
        notes.append(Repair("tool_choice", "W6", "renamed", _REASON))
        choice = choice.replace(names=tuple(aliases.get(name, name) for name in choice.names))
    changed = request.replace_trusted(tools=tools, messages=messages, tool_choice=choice)
    return changed, Context({alias: name for name, alias in aliases.items()})


def _alias(name: str, target: Target) -> str:
    mark = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    room = target.tools.max_name_length - _HASH - 1
    stem = _REFUSED.sub("_", name).strip("_")
    alias = f"{stem[:room] or 'tool'}_{mark}"
    # Gemini refuses a leading digit (W89).
    return alias if target.tools.accepts_name(alias) else f"_{stem[: room - 1]}_{mark}"
