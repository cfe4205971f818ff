"""Flattens groups of tools and tool changes for a target with a single list of tools.

A tool of a group is named after both (`crm__find`); the response has the original names again. This
is translation, not repair: it also happens with `repair=False`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message
from dragoman.model.parts import Opaque
from dragoman.model.requests import AnyTool, Request
from dragoman.model.roles import Role
from dragoman.model.tools import ServerTool, ToolCall, ToolChoice, ToolDefinition, ToolResult
from dragoman.wire.context import CallForm
from dragoman.wire.fitting.steps import Contents, Messages, with_changed_parts
from dragoman.wire.losses import Loss, Note, Repair
from dragoman.wire.target import Target
from dragoman.wire.tool_offers import Group, ToolChange, offers_of

N = TypeVar("N", Loss, Repair, Note)
Places = list[tuple[str, bool]]
"""The original path of each tool, and whether it is the tool's own or that of its container."""
_TOOL = re.compile(r"tools\[(\d+)\]", re.ASCII)
_SYSTEM, _DEVELOPER = Role.SYSTEM, Role.DEVELOPER
_BETWEEN = "__"
_GROUPED = "tools of a group are sent under the group's name and their own"


def with_offered_tools(
    request: Request, target: Target, seen: Contents, calls: dict[str, CallForm],
    notes: list[Note],
) -> tuple[Request, Places | None]:  # fmt: skip
    """List all tools that the model has at the end of the conversation.

    `seen` is the summary of its messages; `calls` collects how calls of the tools must look in
    the response. Also returns the original path of each listed tool; None if none has moved.
    """
    here = target.dialect
    changes = list(_changes(request.messages, here)) if seen.has_media else []
    places: Places | None = None
    if changes:
        tools, places = _changed(request.tools, changes, notes)
        request = request.replace_trusted(tools=tools)
    groups = list(_groups(request.tools, here))
    if groups:
        if places is None:
            places = [(f"tools[{index}]", True) for index in range(len(request.tools))]
        flat = _Flat(request, groups, calls)
        return flat.request(notes), flat.places(places)
    return request, places


def placed_back(notes: Iterable[N], places: Places) -> tuple[N, ...]:
    """Map the paths of losses and repairs back to the original tools."""
    return tuple([_placed_back(note, places) for note in notes])


def _placed_back(note: N, places: Places) -> N:
    found = _TOOL.match(note.path)
    index = int(found[1]) if found is not None else len(places)
    if index >= len(places):
        return note
    place, is_listed = places[index]
    path = f"{place}{note.path[found.end() :]}" if is_listed and found is not None else place
    return note.replace(path=path)


# --- tools added and removed in mid-conversation


def _changes(messages: Messages, here: str) -> Iterator[tuple[int, int, ToolChange]]:
    """The tool changes in other dialects' instructions: message index, part index, change."""
    for index, message in enumerate(messages):
        role = message.role
        if role is not _DEVELOPER and role is not _SYSTEM:
            continue
        for place, part in enumerate(message.parts):
            if type(part) is not Opaque or part.dialect == here:
                continue
            offers = offers_of(part.dialect) if isinstance(part.payload, Mapping) else None
            change = None if offers is None else offers.change(part.payload)
            if change is not None:
                yield index, place, change


def without_tool_changes(request: Request, target: Target, _notes: list[Note]) -> Request:
    """Remove the instructions that `with_offered_tools` has applied."""
    done: dict[int, set[int]] = {}
    for index, place, _ in _changes(request.messages, target.dialect):
        done.setdefault(index, set()).add(place)
    if not done:
        return request
    messages: list[Message] = []
    for index, message in enumerate(request.messages):
        left = [p for place, p in enumerate(message.parts) if place not in done.get(index, ())]
        if len(left) == len(message.parts):
            messages.append(message)
        elif left:
            messages.append(message.replace_unchecked(parts=tuple(left)))
    return request.replace_trusted(messages=tuple(messages))


def _changed(
    tools: tuple[AnyTool, ...], changes: list[tuple[int, int, ToolChange]], notes: list[Note]
) -> tuple[tuple[AnyTool, ...], Places]:
    """The remaining tools, and the original path of each; reports names of unknown tools."""
    listed = dict(enumerate(tools))
    came: Places = [(f"tools[{index}]", True) for index in listed]
    numbers: dict[str, list[int]] = {}
    for number, tool in listed.items():
        numbers.setdefault(_name(tool), []).append(number)
    has_left: set[str] = set()  # a removed tool may be added again
    for message, part, change in changes:
        place = f"messages[{message}].parts[{part}]"
        for tool in change.added:
            name, number = _name(tool), len(came)
            came.append((place, False))
            has_left.discard(name)
            if isinstance(tool, ToolDefinition):  # the last function of a name wins
                for old in numbers.pop(name, ()):
                    listed.pop(old, None)
            numbers.setdefault(name, []).append(number)
            listed[number] = _loaded(tool)
        for name in change.loaded:
            has_left.discard(name)
            for number in numbers.get(name, ()):
                listed[number] = _loaded(listed[number])
        has_left.update(change.removed)
        if not numbers.keys() >= {*change.loaded, *change.removed}:
            notes.append(Loss(place, "it names a tool that is not declared"))
    left = [number for number, tool in listed.items() if _name(tool) not in has_left]
    return tuple(listed[number] for number in left), [came[number] for number in left]


def _name(tool: AnyTool) -> str:
    """The name that the model uses; a provider tool may have a name besides its type."""
    named = tool.payload.get("name") if isinstance(tool, ServerTool) else None
    return named if type(named) is str else tool.name


def _loaded(tool: AnyTool) -> AnyTool:
    if isinstance(tool, ToolDefinition) and tool.defer_loading:
        return tool.replace_unchecked(defer_loading=None)
    return tool


# --- groups


def _groups(tools: tuple[AnyTool, ...], here: str) -> Iterator[tuple[int, Group]]:
    for index, tool in enumerate(tools):
        if type(tool) is not ServerTool or tool.dialect == here:
            continue
        offers = offers_of(tool.dialect)
        group = None if offers is None else offers.group(tool)
        if group is not None and group.tools:  # an empty one is reported like an unknown tool
            yield index, group


class _Flat:
    """Flattens the tool groups of a request into functions."""

    def __init__(
        self, request: Request, groups: list[tuple[int, Group]], calls: dict[str, CallForm]
    ) -> None:
        self._request = request
        self._groups = dict(groups)
        self._calls = calls
        self._taken = {_name(tool) for tool in request.tools}
        self._counts: dict[str, int] = {}
        self._inner: dict[str, list[str]] = {}
        """By inner tool name: the names sent for all tools that have it."""
        self._names: dict[tuple[str, str], str] = {}
        """By group and inner tool name: the name sent."""
        self._results: dict[str, str] = {}
        """By call id: the name sent."""

    def request(self, notes: list[Note]) -> Request:
        """The flattened request; reports renames at paths in the new list."""
        tools: list[AnyTool] = []
        for index, tool in enumerate(self._request.tools):
            group = self._groups.get(index)
            if group is None or not isinstance(tool, ServerTool):
                tools.append(tool)
            else:
                notes.append(Repair(f"tools[{len(tools)}]", "I14", "renamed", _GROUPED))
                tools += [self._told(inner, group, tool.dialect) for inner in group.tools]
        return self._request.replace_trusted(
            tools=tuple(tools),
            messages=with_changed_parts(self._request.messages, self._renamed),
            tool_choice=self._choice(self._request.tool_choice),
        )

    def places(self, before: Places) -> Places:
        """The original path of each tool in the flattened list."""
        made: Places = []
        for index, place in enumerate(before):
            group = self._groups.get(index)
            made += [place] if group is None else [(place[0], False)] * len(group.tools)
        return made

    def _told(self, tool: AnyTool, group: Group, dialect: str) -> AnyTool:
        if not isinstance(tool, ToolDefinition):
            return tool  # a provider tool keeps its name in any group
        flat = self._flat_name(group.name, tool.name)
        field = _field(dialect)
        form = {} if field is None else {dialect: {"status": "completed", field: group.name}}
        self._calls[flat] = CallForm(tool.name, form)
        about = f"{group.name}: {group.description}" if group.description else ""
        description = "\n\n".join(filter(None, (about, tool.description)))
        return tool.replace_unchecked(name=flat, description=description or None)

    def _flat_name(self, group: str, name: str) -> str:
        """A unique name for a tool of a group; deterministic."""
        flat = told = f"{group}{_BETWEEN}{name}"
        while flat in self._taken:
            self._counts[told] = self._counts.get(told, 1) + 1
            flat = f"{told}_{self._counts[told]}"
        self._taken.add(flat)
        self._inner.setdefault(name, []).append(flat)
        self._names.setdefault((group, name), flat)
        return flat

    def _renamed(self, part: AnyPart, _path: str) -> AnyPart:
        if isinstance(part, ToolResult):
            name = self._results.get(part.call_id)
            if name is None:
                return part
            extras = _without_group(part.extras)
            tool_name = part.tool_name and name
            return part.replace_unchecked(tool_name=tool_name, extras=extras)
        if not isinstance(part, ToolCall) or part.extras is EMPTY:
            return part
        for dialect, fields in part.extras.items():
            field = _field(dialect) if isinstance(fields, Mapping) else None
            group = None if field is None else fields.get(field)
            name = self._names.get((group, part.name)) if type(group) is str else None
            if name is not None:
                self._results[part.id] = name
                return part.replace_unchecked(name=name, extras=_without_group(part.extras))
        return part

    def _choice(self, choice: ToolChoice | None) -> ToolChoice | None:
        if choice is None or not choice.names:
            return choice
        group = _group_in(choice.extras)
        found = tuple(self._chosen(name, group) for name in choice.names)
        if found == choice.names:
            return choice
        return choice.replace(names=found, extras=_without_group(choice.extras))

    def _chosen(self, name: str, group: str | None) -> str:
        if group is not None and (group, name) in self._names:
            return self._names[group, name]
        flats = self._inner.get(name, ())
        return flats[0] if len(flats) == 1 and name not in self._taken else name


def _field(dialect: str) -> str | None:
    offers = offers_of(dialect)
    return None if offers is None else offers.group_field


def _group_in(extras: Mapping[str, Any]) -> str | None:
    for dialect, fields in extras.items():
        field = _field(dialect) if isinstance(fields, Mapping) else None
        group = None if field is None else fields.get(field)
        if type(group) is str:
            return group
    return None


def _without_group(extras: Mapping[str, Any]) -> Mapping[str, Any]:
    """Extras without the group name, which is now part of the tool's name."""
    made: dict[str, Any] = {}
    for dialect, fields in extras.items():
        field = _field(dialect) if isinstance(fields, Mapping) else None
        is_named = field is not None and field in fields
        made[dialect] = {k: v for k, v in fields.items() if k != field} if is_named else fields
    return made
