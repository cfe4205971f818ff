"""What is compiled from rows, as plain code that looks at them: for comparing both."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Opaque
from dragoman.wire.overlay import merged, overlay_of, with_note, with_overlay
from dragoman.wire.rows import SILENT, Row, Shape


def read(shape: Shape[Any], wire: dict[str, Any], reading: Any) -> Any:
    """Like `shape.read`."""
    known, names = shape._renamed(wire) if shape.names else (wire, [])
    made = _made(shape, known, reading)
    if made is None:
        return Opaque(shape.dialect, wire, origin=reading.origin)
    extras = overlay_of(known, (), shape.dialect, body(shape, made, SILENT))
    if extras:
        made = made.replace_unchecked(extras=merged(made.extras, extras))
    return made.replace_unchecked(
        extras=with_note(made.extras, shape.dialect, "names", names)
    ) if names else made  # fmt: skip


def _made(shape: Shape[Any], wire: dict[str, Any], reading: Any) -> Any:
    """The value of the rows alone."""
    found: dict[str, Any] = {}
    for row in shape.rows:
        value = _at(wire, row)
        value = value if row.value.passes(value) else None
        if value is not None and row.value.read is not None:
            value = row.value.read(value, reading) if row.deep else row.value.read(value)
        if value is None and row.is_required:
            return None
        if value is not None:
            found |= {row.field: value} if row.field else value
    for name, source in shape.given.items():
        found[name] = eval(source, {"w": wire, "r": reading})  # noqa: S307 - what the table says
    if shape.tag_field:
        found[shape.tag_field] = shape.tag
    if shape.rest:
        own = {row.wire for row in shape.rows} | {*shape.usual, "type"}
        found[shape.rest] = {key: value for key, value in wire.items() if key not in own}
    if isinstance(shape.keeps_origin, str) and shape.keeps_origin in found:
        found["origin"] = reading.origin
    return (shape.make or shape.kind)(**found)


def _at(wire: dict[str, Any], row: Row) -> Any:
    *outer, inner = row.wire.split(".")
    for step in outer:
        wire = wire[step] if isinstance(wire.get(step), dict) else {}
    return wire.get(inner)


def write(shape: Shape[Any], value: Any, writing: Any) -> Any:
    """Like `shape.write`."""
    if shape.allows is not None and (reason := shape.allows(value, writing)) is not None:
        writing.leave_out(reason)
        return UNSET
    wire = body(shape, value, writing)
    return wire if value.extras is EMPTY else with_overlay(wire, value.extras, shape.dialect)


def body(shape: Shape[Any], owner: Any, writing: Any) -> dict[str, Any]:
    """Like `shape.body`."""
    wire: dict[str, Any] = {} if shape.tag is None else {"type": shape.tag}
    must = [row for row in shape.rows if row.is_required or row.always]
    for row in must:
        _put(wire, row, _written(row, owner, writing))
    if shape.usual and (not shape.usual_if or getattr(owner, shape.usual_if) is not None):
        wire |= shape.usual
    for row in shape.rows:
        is_owner = row.takes_owner or not row.field
        unset = shape._default(row)
        if row in must or not (is_owner or getattr(owner, row.field) not in (None, unset)):
            continue
        written = _written(row, owner, writing)
        if written is not None:
            _put(wire, row, written)
        elif not (is_owner or row.reports or row.deep):
            writing.lose_field(row.field, "this value is not supported")
    for key, value in getattr(owner, shape.rest).items() if shape.rest else ():
        wire.setdefault(key, value)
    return wire if shape.writes is None else shape.writes(owner, wire, writing)


def _put(wire: dict[str, Any], row: Row, value: Any) -> None:
    *outer, inner = row.wire.split(".")
    for step in outer:
        wire = wire.setdefault(step, {})
    wire[inner] = value


def _written(row: Row, owner: Any, writing: Any) -> Any:
    value = owner if row.takes_owner or not row.field else getattr(owner, row.field)
    if row.value.write is None:
        return value
    return row.value.write(value, writing) if row.deep or row.reports else row.value.write(value)
