"""Settings that only some servers have, and what dialects without a table of settings leave out.

A dialect lists where its bodies have the former (`Description.host_settings`): `min_p` of some Chat
servers is `options.min_p` in Ollama. A value is moved only if it would be encoded as it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dragoman.model.frozen import EMPTY, thaw
from dragoman.model.requests import Request
from dragoman.model.tools import ToolDefinition
from dragoman.wire.losses import Loss, Note

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


# --- for dialects that don't write them


def unwritten_settings(request: Request) -> Iterator[Loss]:
    """The settings of a request that only a table of settings writes, as losses."""
    if request.sampling.verbosity is not None:
        yield Loss("sampling.verbosity", _NO_PLACE)
    for group in ("service", "media", "context_management"):
        values = getattr(request, group)
        for name in () if values is None else values.__struct_fields__:
            if getattr(values, name) not in _NOTHING:
                yield Loss(f"{group}.{name}", _NO_PLACE)
    for index, tool in enumerate(request.tools):
        for name in _TOOL_FIELDS if isinstance(tool, ToolDefinition) else ():
            if getattr(tool, name) not in _NOTHING:
                yield Loss(f"tools[{index}].{name}", _NO_PLACE)


def own_fields(extras: Mapping[str, Any], dialect: str) -> Mapping[str, Any]:
    """A dialect's own fields in extras; empty if the value there is not an object."""
    found = extras.get(dialect)
    if found is None:
        return EMPTY  # most have none, and the other check is slow
    return found if isinstance(found, (dict, Mapping)) else EMPTY


def _take(fields: dict[str, Any], first: str, rest: Sequence[str]) -> None:
    if rest:
        inner = dict(fields[first])
        _take(inner, rest[0], rest[1:])
        fields[first] = inner
        if inner:
            return
    del fields[first]


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
