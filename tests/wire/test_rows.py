"""What is compiled from rows does what the rows say."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import dumps_sorted
from dragoman.model.parts import Opaque, Origin
from dragoman.model.value import Value
from dragoman.wire import rows
from dragoman.wire.anthropic import tables
from dragoman.wire.anthropic.dialect import TARGET
from dragoman.wire.anthropic.response import HEAD, USAGE
from dragoman.wire.anthropic.tools import TOOL
from dragoman.wire.call_ids import CallIds
from dragoman.wire.gemini.dialect import Writing  # it also tracks calls
from dragoman.wire.gemini.response import HEAD as RESPONSE_HEAD
from dragoman.wire.gemini.tables import PARTS
from dragoman.wire.gemini.tools import DECLARATION
from dragoman.wire.overlay import with_overlay
from dragoman.wire.reading import Reading
from dragoman.wire.rows import Row, Shape, snake
from tests.wire import rows_twin

ORIGINS = (None, Origin(dialect="anthropic"), Origin(dialect="gemini"))
LEAVES = st.sampled_from((None, True, 0, 7, 1 << 64, 0.5, "", "a", "aGk=", "text", "url", "file"))
KEYS = st.sampled_from(("type", "ttl", "text", "url", "data", "media_type", "title", "odd"))
HINT, SOURCE = {"type": "ephemeral"}, {"type": "base64", "media_type": "image/png", "data": "aGk="}
CITED = {"type": "char_location", "document_index": 0, "cited_text": "a", "start_char_index": 1}
VALUES = st.one_of(
    LEAVES,
    st.sampled_from((HINT, {**HINT, "ttl": "1h"}, SOURCE, {"type": "url", "url": "u"}, [CITED])),
    st.recursive(
        LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=6
    ),
)


class Thing(Value, frozen=True, kw_only=True):
    """A value with rows of every kind."""

    name: str
    kind: str | None = None
    size: int | None = None
    tone: str | None = None
    words: tuple[str, ...] = ()
    is_odd: bool = False
    notes: Mapping[str, Any] = EMPTY
    item_id: str | None = None
    extras: Mapping[str, Any] = EMPTY


MADE = {
    "nested": Shape(
        "made", None, Thing,
        Row("theThing.name", "name", is_required=True), Row("theThing.size", "size", rows.WHOLE),
        Row("more.words", "words", rows.TEXTS), Row("isOdd", "is_odd", rows.FLAG),
        key="theThing", twins=True, fields=("kind", "tone", "notes"),
    ),
    "usual": Shape(
        "made", "usual", Thing,
        Row("name", "name", is_required=True),
        Row("tone", "tone", rows.words("loud", soft="quiet", gentle="quiet")),
        Row("size", "size", rows.WHOLE, always=True),
        tag_field="kind", given={"item_id": "w.get('id')"}, usual={"status": "done"},
        usual_if="item_id",
    ),
    "always": Shape("made", None, Thing, Row("name", "name", is_required=True),
                    Row("tone", "tone"), usual={"tone": "loud", "done": True}),
    "rest": Shape("made", None, Thing, Row("name", "name", is_required=True), rest="notes"),
}  # fmt: skip
SHAPES = {
    **{
        f"{shape.kind.__name__} {shape.tag}": shape
        for shape in (*tables.BLOCKS.shapes, TOOL, USAGE, HEAD)
    },
    **{kind: shape for kind, (shape, _) in tables.LOCATIONS.items()},
    **{
        f"gemini {number} {shape.key}": shape
        for number, shape in enumerate((*PARTS.shapes[:-1], RESPONSE_HEAD, DECLARATION))
    },
    **MADE,
}


def _objects(shape: Shape[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with most of the fields of a shape, and others."""
    tag = st.just({} if shape.tag is None else {"type": shape.tag})
    names = [row.wire for row in shape.rows] + [snake(row.wire) for row in shape.rows]
    names += [*shape.usual]
    texts = st.dictionaries(st.sampled_from(names), LEAVES | VALUES)
    full = st.fixed_dictionaries({row.wire: st.just("a") | VALUES for row in shape.rows})
    odd = st.dictionaries(KEYS, VALUES, max_size=2)
    usual = st.sampled_from([dict(shape.usual), {}])
    return st.builds(lambda *made: _unfolded(made[0] | made[1] | made[2] | made[3]), odd, usual,
                     texts | full, tag)  # fmt: skip


def _unfolded(wire: dict[str, Any]) -> dict[str, Any]:
    """An object, with objects for the fields whose name is a path."""
    made: dict[str, Any] = {}
    for path, value in wire.items():
        outer, _, inner = path.partition(".")
        if not inner:
            made.setdefault(outer, value)
        elif isinstance(made.setdefault(outer, {}), dict):
            made[outer] = {**made[outer], inner: value}
    return made


@pytest.mark.parametrize("name", SHAPES)
@given(data=st.data())
def test_compiled_code_does_what_the_rows_say(name: str, data: st.DataObject) -> None:
    """Reading and writing give what the interpreted twin gives, with the same reports."""
    shape = SHAPES[name]
    wire = data.draw(_objects(shape))
    origin = data.draw(st.sampled_from(ORIGINS))
    made = _read(shape.read, wire, origin)
    assert made == _read(partial(rows_twin.read, shape), wire, origin)
    value = made[0]
    if not isinstance(value, Opaque):
        assert _written(shape.write, value) == _written(partial(rows_twin.write, shape), value)


@pytest.mark.parametrize("name", SHAPES)
@given(data=st.data())
def test_what_was_read_is_written_as_it_came(name: str, data: st.DataObject) -> None:
    """What a reader counts, its writer writes; the rest comes back from the residue."""
    shape = SHAPES[name]
    wire = data.draw(_objects(shape))
    reading = Reading(Origin(dialect=shape.dialect), CallIds())
    value: Any = shape.read(wire, reading)
    writing = Writing(TARGET.replace(dialect=shape.dialect))
    writing.origin = reading.origin
    if not isinstance(value, Opaque):
        body = shape.body(value, writing)
        again = body if value.extras is EMPTY else with_overlay(body, value.extras, shape.dialect)
        assert dumps_sorted(again) == dumps_sorted(wire)


def _read(read: Any, wire: Any, origin: Origin | None) -> tuple[Any, bool]:
    reading = Reading(origin, CallIds())
    return read(wire, reading), reading.has_envelopes


def _written(write: Any, value: Any) -> tuple[Any, ...]:
    writing = Writing(TARGET)
    return write(value, writing), writing.losses, writing.repairs, writing.wire_ids


def test_tracebacks_show_the_compiled_lines() -> None:
    """An error in a hook shows the line that called it."""
    with pytest.raises(AttributeError) as caught:
        tables.IMAGE.write("no part", Writing(TARGET))
    linecache.checkcache()  # what is stale would go
    assert "no = allows(p, o)" in "".join(traceback.format_exception(caught.value))
