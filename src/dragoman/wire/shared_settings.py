"""Settings that several APIs have under different names: `user`, `service_tier`, `verbosity`.

A dialect lists where its bodies have them (`Description.shared_settings`, and for tool
declarations `shared_tool_settings`). Its decoder leaves such fields in the extras, like all unknown
fields. From there they are moved into the model, and back before the request is encoded, so that a
dialect's own code doesn't handle them.

A value is moved only if it would be encoded exactly as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import astuple

from dragoman.model.frozen import EMPTY, FrozenDict, freeze_mapping, thaw
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
_NO_PLACE = "this setting is not supported"


def as_json(value: Any) -> Any:
    """A value in JSON form."""
    return list(value) if isinstance(value, tuple) else thaw(value)


class SharedSetting(NamedTuple):
    """Where a body has a setting (`text.verbosity`), and where the model has it."""

    path: str
    name: str
    """`service.user`; for a tool, its field."""
    read: Callable[[Any], Any]
    """Decodes the value; None if it can't be read."""
    write: Callable[[Any], Any] = as_json
    """Encodes the value; None if the dialect has no such value."""


class SharedSettings:
    """The shared settings of a dialect, indexed by wire field and by the model's names."""

    __slots__ = ("_by_field", "_by_name", "rows")

    def __init__(self, *rows: SharedSetting) -> None:
        self.rows = rows
        self._by_field: dict[str, list[tuple[Sequence[str], SharedSetting]]] = {}
        self._by_name: dict[str, list[tuple[Sequence[str], SharedSetting]]] = {}
        for row in rows:
            first, *rest = steps = row.path.split(".")
            self._by_field.setdefault(first, []).append((rest, row))
            self._by_name.setdefault(row.name, []).append((steps, row))

    def __bool__(self) -> bool:
        return bool(self.rows)

    def __iter__(self) -> Iterator[SharedSetting]:
        return iter(self.rows)

    def taken(self, fields: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The settings in these fields, and the remaining fields; None if there are none."""
        found: dict[str, Any] = {}
        left: dict[str, Any] | None = None
        for first in fields:
            for rest, row in self._by_field.get(first, ()):
                wire = (fields if left is None else left).get(first)
                for step in rest:
                    wire = wire.get(step) if isinstance(wire, Mapping) else None
                value = None if wire is None or row.name in found else row.read(wire)
                if value not in _NOTHING and row.write(value) == wire:
                    found[row.name] = value
                    left = dict(fields) if left is None else left
                    _take(left, first, rest)
        return None if left is None else (found, left)

    def put(
        self, fields: dict[str, Any], given: Mapping[str, Any], where: str, notes: list[Note]
    ) -> None:
        """Write settings into these fields; report unsupported ones as losses."""
        for name, value in given.items():
            for steps, row in self._by_name.get(name, ()):
                wire = row.write(value)
                if wire is not None and _put(fields, steps, wire):
                    break
            else:
                notes.append(Loss(f"{where}{name}", _NO_PLACE))


def words(**ours: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Functions that decode and encode a setting with few values, given as `wire="model"`."""
    theirs = {value: key for key, value in ours.items()}
    return (lambda value: ours.get(value) if isinstance(value, str) else None), theirs.get


NEAREST_TIERS = {"on_demand": "standard", "performance": "priority", "fast": "priority"}
"""For tiers that only some hosts have: the closest tier elsewhere."""


def tiers(**ours: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Like `words`, for service tiers; tiers that only some hosts have map to the closest one."""
    read, write = words(**ours)
    return read, lambda tier: write(tier) or write(NEAREST_TIERS.get(tier))


# --- decoding: from the extras into the model


def with_shared_settings(request: Request, described: Description) -> Request:
    """Move the shared settings in its dialect's extras into the request."""
    dialect = described.name
    changes: dict[str, Any] = {}
    own = own_fields(request.extras, dialect)
    found = described.shared_settings.taken(own) if own else None
    if found is not None:
        changes = _changed(request, found[0])
        changes["extras"] = _with_fields(request.extras, dialect, found[1])
    settings = described.shared_tool_settings
    if request.tools and settings.rows:
        tools = tuple([_with_settings(tool, dialect, settings) for tool in request.tools])
        if not all(map(is_, tools, request.tools)):
            changes["tools"] = tools
    return request.replace_trusted(**changes) if changes else request


def own_fields(extras: Mapping[str, Any], dialect: str) -> Mapping[str, Any]:
    """A dialect's own fields in extras; empty if the value there is not an object."""
    found = extras.get(dialect)
    if found is None:
        return EMPTY  # most have none, and the other check is slow
    return found if isinstance(found, (dict, Mapping)) else EMPTY


def _with_fields(
    extras: Mapping[str, Any], dialect: str, fields: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Replace a dialect's own fields in extras."""
    others = {key: value for key, value in extras.items() if key != dialect}
    if fields:
        return freeze_mapping({**others, dialect: fields}, "extras")
    return FrozenDict(others) if others else EMPTY  # their values are frozen


def _with_settings(tool: Any, dialect: str, settings: SharedSettings) -> Any:
    if type(tool) is not ToolDefinition or tool.extras is EMPTY:
        return tool
    own = own_fields(tool.extras, dialect)
    found = settings.taken(own) if own else None
    if found is None:
        return tool
    extras = _with_fields(tool.extras, dialect, found[1])
    return tool.replace_unchecked(**found[0], extras=extras)


def _take(fields: dict[str, Any], first: str, rest: Sequence[str]) -> None:
    if rest:
        inner = dict(fields[first])
        _take(inner, rest[0], rest[1:])
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


# --- encoding: from the model into the extras


def has_shared_settings(request: Request) -> bool:
    """Whether any shared setting is set."""
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
    """Move shared settings to where the dialect has them; report the others as losses."""
    dialect = described.name
    changes: dict[str, Any] = {}
    given = _given(request)
    if given:
        own = dict(own_fields(request.extras, dialect))
        described.shared_settings.put(own, given, "", notes)
        changes = {group: None for group in _GROUPS if getattr(request, group) is not None}
        if request.sampling.verbosity is not None:
            changes["sampling"] = request.sampling.replace_trusted(verbosity=None)
        if own:
            changes["extras"] = _with_fields(request.extras, dialect, own)
    settings = described.shared_tool_settings
    if any(map(_has_settings, request.tools)):
        changes["tools"] = tuple(
            [
                _without(tool, index, dialect, settings, notes)
                for index, tool in enumerate(request.tools)
            ]
        )
    return request.replace_trusted(**changes) if changes else request


def _given(request: Request) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if request.sampling.verbosity is not None:
        given["sampling.verbosity"] = request.sampling.verbosity
    for group in _GROUPS:
        values = getattr(request, group)
        if values is not None:
            for field, value in zip(values.__struct_fields__, astuple(values), strict=True):
                # Identity first: `in` is slow.
                if value is not None and value is not EMPTY and value not in _NOTHING:
                    given[f"{group}.{field}"] = value
    return given


def _without(
    tool: Any, index: int, dialect: str, settings: SharedSettings, notes: list[Note]
) -> Any:
    if not _has_settings(tool):
        return tool
    given = {name: value for name in _TOOL_FIELDS if (value := getattr(tool, name)) not in _NOTHING}
    own = dict(own_fields(tool.extras, dialect))
    settings.put(own, given, f"tools[{index}].", notes)
    return tool.replace_unchecked(
        defer_loading=None,
        allowed_callers=(),
        output_schema=None,
        extras=_with_fields(tool.extras, dialect, own) if own else tool.extras,
    )


def _put(fields: dict[str, Any], steps: Sequence[str], value: Any) -> bool:
    """Set a value at a path, copying objects on the way; returns whether that was possible."""
    for step in steps[:-1]:
        inner = fields.get(step, EMPTY)
        if not isinstance(inner, dict):
            return False
        fields[step] = inner = dict(inner)
        fields = inner
    if fields.get(steps[-1]) is None:
        fields[steps[-1]] = value
    return bool(fields[steps[-1]] == value)
