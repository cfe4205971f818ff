"""Deltas of streams are folded into whole wire objects."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.parts import Opaque, Text, Thinking
from dragoman.wire.anthropic.tables import BLOCKS, CALL, TEXT_BLOCK, THINKING
from dragoman.wire.folding import Folded, Growing, Transitions, event_fields, piece_in
from dragoman.wire.rows import SILENT

GROWING = Growing(BLOCKS)
CITED = {"type": "char_location", "document_index": 0, "cited_text": "a", "start_char_index": 1}


def test_a_delta_belongs_to_a_row_of_its_part() -> None:
    """It is found by the class of the part and the type of the delta."""
    delta = {"type": "thinking_delta", "thinking": "Hm"}
    found = GROWING.of(Thinking(""), delta)
    assert found is not None
    assert found.row is THINKING.rows[0]
    assert event_fields(found.row, piece_in(found, delta)) == {"text": "Hm"}
    assert GROWING.of(Text(""), delta) is None
    assert GROWING.of(Opaque("anthropic", {}), delta) is None


@pytest.mark.parametrize("delta", [{"type": "text_delta"}, {"type": "text_delta", "text": 5}])
def test_a_delta_without_its_piece_does_not_fit(delta: dict[str, object]) -> None:
    """The decoder passes it on as an unknown event."""
    growth = GROWING.of(Text(""), delta)
    assert growth is not None
    with pytest.raises(LookupError):
        piece_in(growth, delta)


@given(pieces=st.lists(st.text()))
def test_texts_are_joined(pieces: list[str]) -> None:
    """Beginning and pieces are one text."""
    block = Folded({"type": "text", "text": "a"})
    for piece in pieces:
        block.add(TEXT_BLOCK.rows[0], piece)
    assert block.whole() == {"type": "text", "text": "a" + "".join(pieces)}


@given(arguments=st.dictionaries(st.text(), st.text() | st.integers(), min_size=1), data=st.data())
def test_arguments_are_parsed(arguments: dict[str, object], data: st.DataObject) -> None:
    """Their text may be cut anywhere; what is no JSON stays as text."""
    text = json.dumps(arguments)
    cut = data.draw(st.integers(0, len(text)))
    call = Folded(GROWING.begun({"type": "tool_use", "id": "a", "name": "b", "input": None}))
    row = next(row for row in CALL.rows if row.grows)
    call.add(row, text[:cut])
    assert call.whole()["input"] == (arguments if cut == len(text) else text[:cut] or {})
    call.add(row, text[cut:])
    assert call.whole()["input"] == arguments


def test_items_are_appended() -> None:
    """Citations are added to those that the block began with."""
    block = Folded({"type": "text", "text": "a", "citations": [CITED]})
    block.add(TEXT_BLOCK.rows[1], CITED)
    assert block.whole()["citations"] == [CITED, CITED]
    text = TEXT_BLOCK.read(block.whole(), SILENT)
    assert isinstance(text, Text)
    assert len(text.citations) == 2


def test_objects_without_a_shape_are_merged() -> None:
    """Texts grow, other values replace, null does not."""
    block = Folded({"type": "odd", "words": "a", "size": 1})
    block.merge({"type": "odd_delta", "words": "b", "size": None, "more": None})
    block.merge({"type": "odd_delta", "size": 2})
    assert block.whole() == {"type": "odd", "words": "ab", "size": 2, "more": None}


def test_what_may_not_follow_is_refused() -> None:
    """An encoder that breaks its own grammar fails instead of sending it."""
    stream = Transitions("idle", {"idle": {"start": "busy"}, "busy": {"stop": "idle"}})
    stream.go("start")
    assert not stream.may("start")
    with pytest.raises(LookupError):
        stream.go("start")
