"""The settings of a request as rows: paths of the wire (`output_config.effort`) and of the model.

A row's field is one of a group (`sampling.max_tokens`), a whole group (`thinking`: its reader gives
fields by name, its writer is given the group), or one of the request itself (`stream`). Several
rows may have the same field, or the same place on the wire: reading, the first value wins; writing,
the first that can be written there. From the rows are made:

- `read(wire)`: the fields of the request that were found. A `strict` row is only read if it would
  be written as it came. What is not read stays in the overlay.
- `write(request, writing)`: the body. A field without a row, or with a value that no row can say,
  is reported as lost.
- `places`: what each wire field stands for in the model, for edits (`overlay_edits`) and for names
  that merely look like a known one (`known_fields`).

>>> settings = Settings(Row("max", "sampling.max_tokens", WHOLE), Row("stream", "stream", FLAG))
>>> settings.read({"max": 5, "stream": True})["sampling"].max_tokens
5
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from msgspec.structs import FieldInfo, fields

from dragoman.model.frozen import EMPTY
from dragoman.model.requests import (
    BLANK,
    UNSAID,
    ContextManagement,
    MediaOutput,
    Output,
    Request,
    Sampling,
    Service,
    State,
    ThinkingConfig,
)
from dragoman.model.tools import ToolDefinition
from dragoman.wire.overlay import Overlay, are_same
from dragoman.wire.rows import FLAG, WHOLE, Row, compiled, misfits, snake

__all__ = ("FLAG", "WHOLE", "Row", "Settings")  # the first two for the example above

_GROUPS: dict[str, type] = {
    "sampling": Sampling,
    "output": Output,
    "thinking": ThinkingConfig,
    "state": State,
    "media": MediaOutput,
    "service": Service,
    "context_management": ContextManagement,
}
_TOLD = frozenset({"output", "thinking", "state"})
"""Groups whose losses are reported by the writer of the group, or by fitting."""
_NEUTRAL: dict[str, Any] = {
    "sampling.choices": 1,
    "sampling.logprobs": False,
    "sampling.presence_penalty": 0,
    "sampling.frequency_penalty": 0,
    "sampling.top_logprobs": 0,
}
"""Values that mean the same as none."""
_APART = frozenset({"extras", "origin"})
_REASON = "this setting is not supported"


class Settings:
    """The settings of one dialect's requests."""

    def __init__(self, *rows: Row, twins: bool = False, beside: Mapping[str, str] = EMPTY) -> None:
        """Take the rows. With `twins`, names may be in snake case on the wire.

        `beside` are more paths of the wire, which the codec reads and writes itself, with what they
        stand for in the model: `contents="messages"`.
        """
        self.rows, self._has_twins, self._beside = rows, twins, beside

    @cached_property
    def read(self) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
        """The fields of a request that a body has."""
        found: Callable[[Mapping[str, Any]], dict[str, Any]]
        found = compiled("settings", "read", self._reader(), self._names)
        return found

    @cached_property
    def write(self) -> Callable[[Request, Any], dict[str, Any]]:
        """The settings of a request as a body."""
        found: Callable[[Request, Any], dict[str, Any]]
        found = compiled("settings", "write", self._writer(), self._names)
        return found

    @cached_property
    def places(self) -> dict[str, Any]:
        """What the fields of the wire stand for."""
        found: dict[str, Any] = {}
        for path, field in (*self._beside.items(), *((row.wire, row.field) for row in self.rows)):
            *outer, last = path.split(".")
            inner = found
            for step in outer:
                inner = inner.setdefault(step, {})
            if isinstance(inner, dict):
                inner.setdefault(last, field)
        return _in_both_spellings(found) if self._has_twins else found

    def misfits(self, wire: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """The fields that are of another type than their rows say, and what they should be."""
        yield from misfits({row.wire: row for row in self.rows}.values(), wire)

    def renamed(self, wire: dict[str, Any], overlay: Overlay) -> dict[str, Any]:
        """The body under our names, which it may have in snake case; they are recorded."""
        for path, names in self._twins.items():  # outer objects first
            found: Any = wire
            for step in path:
                found = found.get(step) if isinstance(found, dict) else None
            if isinstance(found, dict):
                made = overlay.renamed(found, names, *path)
                wire = wire if made is found else _with(wire, path, made)
        return wire

    @cached_property
    def _twins(self) -> dict[tuple[str, ...], dict[str, str]]:
        found: dict[tuple[str, ...], dict[str, str]] = {}
        for path in (*self._beside, *(row.wire for row in self.rows)) if self._has_twins else ():
            steps = path.split(".")
            for place, step in enumerate(steps):
                if (twin := snake(step)) != step:
                    found.setdefault(tuple(steps[:place]), {})[twin] = step
        return found

    @property
    def _names(self) -> dict[str, Any]:
        names: dict[str, Any] = {"NONE": {}, "same": are_same, "put": _put, "UNSAID": UNSAID}
        names |= {f"{group}_": kind for group, kind in _GROUPS.items()}
        names |= {f"no_{group}": getattr(BLANK, group) for group in _GROUPS}
        for number, row in enumerate(self.rows):
            names[f"read{number}"], names[f"write{number}"] = row.value.read, row.value.write
        return names

    # --- reading

    def _reader(self) -> Iterator[str]:
        """The source of `read`, of a body `w`."""
        groups = [name for name in _GROUPS if self._rows_of(name) or self._rows_in(name)]
        inside = {"": "w"}
        yield "def read(w):"
        yield f"    f = {{}}; {'; '.join(f'{group} = {{}}' for group in groups)}"
        for number, row in enumerate(self.rows):
            outer, _, last = row.wire.rpartition(".")
            yield from self._inside(outer, inside)
            shared = [n for n, each in enumerate(self.rows) if each.wire == row.wire]
            yield f"    v{number} = v = {inside[outer]}.get({last!r})"
            read_before = "".join(f" and v{n} is None" for n in shared if n < number)
            yield f"    if {f'({row.value.test})'}{read_before}:"
            test = "        if v is not None:"
            if row.value.read is not None:
                yield f"        v = read{number}(v)"
                if row.strict and row.value.write is not None:
                    test = f"        if v is not None and same(write{number}(v), v{number}):"
            yield f"{test} {self._taken(row)}"
            if shared[-1] != number:
                yield f"        else: v{number} = None"
                yield f"    else: v{number} = None"
        yield from (f"    if {group}: f[{group!r}] = {group}_(**{group})" for group in groups)
        yield "    f.setdefault('sampling', UNSAID)"
        yield "    return f"

    def _inside(self, path: str, known: dict[str, str]) -> Iterator[str]:
        """The source that takes the object at a path."""
        if path in known:
            return
        outer, _, last = path.rpartition(".")
        yield from self._inside(outer, known)
        known[path] = f"b{len(known)}"
        yield f"    {known[path]} = {known[outer]}.get({last!r})"
        yield f"    if not isinstance({known[path]}, dict): {known[path]} = NONE"

    def _taken(self, row: Row) -> str:
        group, _, field = row.field.partition(".")
        if group not in _GROUPS:
            return f"f.setdefault({group!r}, v)"
        if field:
            return f"{group}.setdefault({field!r}, v)"
        return f"{group}.update(v)" if self._rows_in(group) else f"{group} = {group} or v"

    def _rows_of(self, field: str) -> list[Row]:
        return [row for row in self.rows if row.field == field]

    def _rows_in(self, group: str) -> list[Row]:
        return [row for row in self.rows if row.field.startswith(f"{group}.")]

    # --- writing

    def _writer(self) -> Iterator[str]:
        """The source of `write`, of a request `q` and the writing `o`."""
        yield "def write(q, o):"
        yield "    w = {}"
        for row in self.rows:
            if row.field.partition(".")[0] not in _GROUPS:
                yield f"    v = q.{row.field}"
                yield "    if v is not None:"
                yield from self._written([row], " " * 8)
        for group, kind in _GROUPS.items():
            rows = self._rows_of(group)
            lines = ["        v = g", *self._written(rows, " " * 8)] if rows else []
            for field in fields(kind):
                lines += self._field(group, field)
            if lines:
                yield f"    g = q.{group}"
                yield f"    if g is not None and g is not no_{group}:"
                yield from lines
        yield "    return w"

    def _field(self, group: str, field: FieldInfo) -> Iterator[str]:
        """The source that writes a field of a group, or reports it."""
        path = f"{group}.{field.name}"
        rows = self._rows_of(path)
        if rows or not (group in _TOLD or field.name in _APART):
            yield f"        v = g.{field.name}"
            yield f"        if {'v is not None' if field.default is None else 'v'}:"
            if not rows and path in _NEUTRAL:
                yield f"            if v == {_NEUTRAL[path]!r}: v = None"
                yield f"            else: o.lose({path!r}, {_REASON!r})"
            else:
                yield from self._written(rows, " " * 12, path)

    def _written(self, rows: list[Row], pad: str, path: str = "") -> Iterator[str]:
        """The source that writes `v` at the first place that takes it, else reports the path."""
        for row in rows:
            number, steps = self.rows.index(row), row.wire.split(".")
            is_shared = len(steps) > 1 or sum(each.wire == row.wire for each in self.rows) > 1
            given = "v, o" if row.reports else "v"
            yield f"{pad}m = {'v' if row.value.write is None else f'write{number}({given})'}"
            if is_shared:
                yield f"{pad}if m is None or not put(w, {steps!r}, m):"
            else:
                yield f"{pad}if m is not None: w[{row.wire!r}] = m"
                yield f"{pad}else:"
            pad += "    "
        is_told = not path or any(row.reports for row in rows)
        yield f"{pad}{'pass' if is_told else f'o.lose({path!r}, {_REASON!r})'}"


def lose_tool_settings(tool: ToolDefinition, path: str, writing: Any) -> None:
    """Report the settings of a tool that a dialect without them can't say."""
    for name in ("defer_loading", "allowed_callers", "output_schema"):
        if getattr(tool, name) not in (None, ()):
            writing.lose(f"{path}.{name}", _REASON)


def _put(body: dict[str, Any], steps: Iterable[str], value: Any) -> bool:
    """Set a value at a path; whether that was possible, since none other was there."""
    *outer, last = steps
    for step in outer:
        body = body.setdefault(step, {})
    return bool(body.setdefault(last, value) == value)


def _in_both_spellings(places: dict[str, Any]) -> dict[str, Any]:
    made = {
        name: _in_both_spellings(place) if isinstance(place, dict) else place
        for name, place in places.items()
    }
    return {snake(name): place for name, place in made.items()} | made


def _with(wire: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    return {**wire, path[0]: _with(wire[path[0]], path[1:], value)} if path else value
