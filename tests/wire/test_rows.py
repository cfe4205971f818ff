"""What is compiled from rows does what the rows say."""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.parts import Opaque, Origin
from dragoman.wire.anthropic.dialect import TARGET
from dragoman.wire.call_ids import CallIds
from dragoman.wire.reading import Reading
from dragoman.wire.rows import Shape
from dragoman.wire.writing import Writing
from tests.wire import rows_twin

HOLDERS = ("anthropic.content_blocks", "anthropic.content", "anthropic.tools")
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


def _shapes() -> Iterator[tuple[str, Shape[Any]]]:
    for holder in HOLDERS:
        module = import_module(f"dragoman.wire.{holder}")
        for name, found in vars(module).items():
            if isinstance(found, Shape):
                yield name, found
            elif name == "_LOCATIONS":
                yield from ((kind, shape) for kind, (shape, _) in found.items())


SHAPES = dict(_shapes())


def _objects(shape: Shape[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with most of the fields of a shape, and others."""
    tag = st.just({} if shape.tag is None else {"type": shape.tag})
    texts = st.dictionaries(st.sampled_from([row.wire for row in shape.rows]), LEAVES | VALUES)
    full = st.fixed_dictionaries({row.wire: st.just("a") | VALUES for row in shape.rows})
    odd = st.dictionaries(KEYS, VALUES, max_size=2)
    return st.builds(lambda *made: made[0] | made[1] | made[2], odd, texts | full, tag)


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


def _read(read: Any, wire: Any, origin: Origin | None) -> tuple[Any, bool]:
    reading = Reading(origin, CallIds())
    return read(wire, reading), reading.has_envelopes


def _written(write: Any, value: Any) -> tuple[Any, ...]:
    writing = Writing(TARGET)
    return write(value, writing), writing.losses, writing.repairs, writing.wire_ids


def test_tracebacks_show_the_compiled_lines() -> None:
    """An error in a hook shows the line that called it."""
    with pytest.raises(AttributeError) as caught:
        SHAPES["IMAGE"].write("no part", Writing(TARGET))
    linecache.checkcache()  # what is stale would go
    assert "if not allows(p, o): return UNSET" in "".join(traceback.format_exception(caught.value))
