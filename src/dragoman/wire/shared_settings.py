"""Settings that several APIs have under names of their own: `user`, `service_tier`, `verbosity`.

A dialect lists where its bodies have them (`Description.shared_settings`, and for the declarations
of tools `shared_tool_settings`). Its decoder leaves such fields in the extras, as it does with all
that it does not know. From there they are taken into the model, and put back before the request is
written: so a dialect's own code has nothing to do with them.

A value is taken only if it would be written just as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dragoman.model.frozen import EMPTY, freeze_mapping, thaw
from dragoman.model.requests import ContextManagement, MediaOutput, Request, Service
from dragoman.model.tools import ToolDefinition
from dragoman.model.value import Value
from dragoman.wire.losses import Loss, Note

if TYPE_CHECKING:
    from dragoman.wire.description import Description

_GROUPS: dict[str, type[Value]] = {
    "service": Service,
    "media": MediaOutput,
    "context_management": ContextManagement,
}
_TOOL_FIELDS = ("defer_loading", "allowed_callers", "output_schema")
_NOTHING = (None, (), EMPTY)
_NO_PLACE = "there is no such setting here"


def as_json(value: Any) -> Any:
    """A value as JSON has it."""
    return list(value) if isinstance(value, tuple) else thaw(value)


class SharedSetting(NamedTuple):
    """Where a body has a setting (`text.verbosity`), and where the model does."""

    path: str
    name: str
    """`service.user`; of a tool: its field."""
    read: Callable[[Any], Any]
    """None where it can't be read."""
    write: Callable[[Any], Any] = as_json
    """None where the dialect has no such value."""


def words(**ours: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """How to read and write a setting that has few values: the model's, by the wire's."""
    theirs = {value: key for key, value in ours.items()}
    return (lambda value: ours.get(value) if isinstance(value, str) else None), theirs.get


# --- from the extras into the model


def with_shared_settings(request: Request, described: Description) -> Request:
    """The request with the settings that stood in its dialect's extras."""
    dialect, settings = described.name, described.shared_settings
    tool_settings = described.shared_tool_settings
    changes: dict[str, Any] = {}
    own = request.extras.get(dialect)
    if own and settings:
        left = dict(own)
        found = dict(_taken(left, settings))
        if found:
            changes = _changed(request, found)
            changes["extras"] = _with_fields(request.extras, dialect, left)
    if tool_settings:
        tools = tuple(_with_settings(tool, dialect, tool_settings) for tool in request.tools)
        if any(new is not old for new, old in zip(tools, request.tools, strict=True)):
            changes["tools"] = tools
    return request.replace_trusted(**changes) if changes else request


def _with_fields(
    extras: Mapping[str, Any], dialect: str, fields: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Extras with these fields as a dialect's own."""
    others = {key: value for key, value in extras.items() if key != dialect}
    made = {**others, dialect: fields} if fields else others
    return freeze_mapping(made, "extras") if made else EMPTY


def _with_settings(tool: Any, dialect: str, settings: Sequence[SharedSetting]) -> Any:
    own = tool.extras.get(dialect) if isinstance(tool, ToolDefinition) else None
    if not own:
        return tool
    left = dict(own)
    found = dict(_taken(left, settings))
    if not found:
        return tool
    extras = {key: value for key, value in tool.extras.items() if key != dialect}
    return tool.replace_unchecked(**found, extras={**extras, dialect: left} if left else extras)


def _taken(fields: dict[str, Any], settings: Sequence[SharedSetting]) -> Iterator[tuple[str, Any]]:
    """The settings in these fields, from which they are taken; of two for one the first counts."""
    names: set[str] = set()
    for setting in settings:
        steps = setting.path.split(".")
        wire = _found(fields, steps)
        value = None if wire is None or setting.name in names else setting.read(wire)
        if value not in _NOTHING and setting.write(value) == thaw(wire):
            names.add(setting.name)
            yield setting.name, value
            _take(fields, steps)


def _found(fields: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        fields = fields.get(step) if isinstance(fields, Mapping) else None
    return fields


def _take(fields: dict[str, Any], steps: Sequence[str]) -> None:
    first, *rest = steps
    if rest:
        inner = dict(fields[first])
        _take(inner, rest)
        fields[first] = inner
        if inner:
            return
    del fields[first]


def _changed(request: Request, found: Mapping[str, Any]) -> dict[str, Any]:
    groups: dict[str, dict[str, Any]] = {}
    for name, value in found.items():
        group, _, field = name.partition(".")
        groups.setdefault(group, {})[field] = value
    changes: dict[str, Any] = {}
    for group, fields in groups.items():
        before = getattr(request, group)
        changes[group] = _GROUPS[group](**fields) if before is None else before.replace(**fields)
    return changes


# --- from the model into the extras, for whoever writes the request


def has_shared_settings(request: Request) -> bool:
    """Whether any is set."""
    return (
        request.service is not None
        or request.media is not None
        or request.context_management is not None
        or request.sampling.verbosity is not None
        or any(map(_has_settings, request.tools))
    )


def _has_settings(tool: Any) -> bool:
    return isinstance(tool, ToolDefinition) and (
        tool.defer_loading is not None
        or tool.output_schema is not None
        or bool(tool.allowed_callers)
    )


def without_shared_settings(request: Request, described: Description, notes: list[Note]) -> Request:
    """The request with its settings where the dialect has them; the others are lost, and noted."""
    dialect, settings = described.name, described.shared_settings
    tool_settings = described.shared_tool_settings
    changes: dict[str, Any] = {}
    given = dict(_given(request))
    if given:
        own = thaw(request.extras.get(dialect, EMPTY))
        _put_all(own, given, settings, "", notes)
        changes = {group: None for group in _GROUPS if getattr(request, group) is not None}
        if request.sampling.verbosity is not None:
            changes["sampling"] = request.sampling.replace_trusted(verbosity=None)
        if own:
            changes["extras"] = _with_fields(request.extras, dialect, own)
    tools = [
        _without(tool, index, dialect, tool_settings, notes)
        for index, tool in enumerate(request.tools)
    ]
    if any(new is not old for new, old in zip(tools, request.tools, strict=True)):
        changes["tools"] = tuple(tools)
    return request.replace_trusted(**changes) if changes else request


def _given(request: Request) -> Iterator[tuple[str, Any]]:
    if request.sampling.verbosity is not None:
        yield "sampling.verbosity", request.sampling.verbosity
    for group in _GROUPS:
        values = getattr(request, group)
        if values is not None:
            for field in values.__struct_fields__:
                value = getattr(values, field)
                if value not in _NOTHING:
                    yield f"{group}.{field}", value


def _without(
    tool: Any, index: int, dialect: str, settings: Sequence[SharedSetting], notes: list[Note]
) -> Any:
    if not _has_settings(tool):
        return tool
    given = {name: value for name in _TOOL_FIELDS if (value := getattr(tool, name)) not in _NOTHING}
    own = thaw(tool.extras.get(dialect, EMPTY))
    _put_all(own, given, settings, f"tools[{index}].", notes)
    extras = {**tool.extras, dialect: own} if own else tool.extras
    return tool.replace_unchecked(
        defer_loading=None, allowed_callers=(), output_schema=None, extras=extras
    )


def _put_all(
    own: dict[str, Any],
    given: Mapping[str, Any],
    settings: Sequence[SharedSetting],
    where: str,
    notes: list[Note],
) -> None:
    for name, value in given.items():
        for setting in settings:
            if setting.name == name:
                wire = setting.write(value)
                if wire is not None and _put(own, setting.path.split("."), wire):
                    break
        else:
            notes.append(Loss(f"{where}{name}", _NO_PLACE))


def _put(fields: dict[str, Any], steps: Sequence[str], value: Any) -> bool:
    """Whether there was room for it."""
    for step in steps[:-1]:
        inner = fields.setdefault(step, {})
        if not isinstance(inner, dict):
            return False
        fields = inner
    if fields.get(steps[-1]) is None:
        fields[steps[-1]] = value
    return bool(fields[steps[-1]] == value)
