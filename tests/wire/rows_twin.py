"""What is compiled from rows, as plain code that looks at them: for comparing both."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Opaque
from dragoman.wire.overlay import overlay_of, with_overlay
from dragoman.wire.reading import Reading
from dragoman.wire.rows import WHOLE, Row, Shape, anything, mapping
from dragoman.wire.settings_table import flag, text, whole

_TYPES = {text, flag, whole, mapping, anything}


def read(shape: Shape[Any], wire: dict[str, Any], reading: Reading) -> Any:
    """Like `shape.read`."""
    found: dict[str, Any] = dict(shape.fixed)
    if shape.origin == WHOLE:
        found["origin"] = reading.origin
    was_read: list[Row] = []
    for row in sorted(shape.rows, key=lambda row: not row.is_required):
        value = wire.get(row.wire)
        if value is not None:
            value = row.read(value) if row.read in _TYPES else row.read(value, reading)
        if value is not None:
            was_read.append(row)
            found |= {row.field: value} if row.field else value
        elif row.is_required:
            return Opaque(shape.dialect, wire, origin=reading.origin)
    if shape.origin in found:
        found["origin"] = reading.origin
    made = shape.kind(**found) if shape.make is None else shape.make(reading, **found)
    known = {"type"} if shape.tag else set[str]()
    known |= {row.wire for row in was_read if not row.is_compared}
    compared = {row.wire: _value(row, made, None) for row in was_read if row.is_compared}
    extras = overlay_of(wire, known, shape.dialect, compared)
    return made.replace_unchecked(extras=extras) if extras else made


def write(shape: Shape[Any], value: Any, writing: Any) -> Any:
    """Like `shape.write`."""
    if shape.allows is not None and not shape.allows(value, writing):
        return UNSET
    wire: dict[str, Any] = {} if shape.tag is None else {"type": shape.tag}
    for row in shape.rows:
        if (written := _value(row, value, writing)) is not None or row.is_required:
            wire[row.wire] = written
    return wire if value.extras is EMPTY else with_overlay(wire, value.extras, shape.dialect)


def _value(row: Row, owner: Any, writing: Any) -> Any:
    value = owner if row.takes_owner else getattr(owner, row.field)
    if row.write is None or not (value or row.is_required or row.takes_owner):
        return value if row.write is None else None
    return row.write(value, writing)
