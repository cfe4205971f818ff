"""Unknown fields are carried along, and restored without overriding edits."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import WireError
from dragoman.model.frozen import EMPTY
from dragoman.wire import overlay, overlay_stored
from dragoman.wire.json_values import parsed, want
from dragoman.wire.overlay import fields_of, overlay_of, with_overlay

NAME = "some-dialect"
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3))
objects = st.recursive(
    st.dictionaries(st.sampled_from("abc"), scalars, max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), scalars | inner, max_size=3),
    max_leaves=6,
)


def test_unknown_fields_are_kept() -> None:
    """They are kept under the dialect's name, nulls included; without any, extras are empty."""
    assert overlay_of({"known": 1, "odd": None}, {"known"}, NAME) == {NAME: {"odd": None}}
    assert overlay_of({"known": 1}, {"known"}, NAME) is EMPTY


@given(wire=objects, rebuilt=objects)
def test_the_overlay_restores_the_wire_s_fields(
    wire: dict[str, Any], rebuilt: dict[str, Any]
) -> None:
    """It corrects whatever an encoder leaves out or writes differently."""
    restored = with_overlay(dict(rebuilt), overlay_of(wire, (), NAME, rebuilt), NAME)
    for key, value in wire.items():
        if not (isinstance(value, dict) and isinstance(rebuilt.get(key), dict)):
            assert restored[key] == value
            assert isinstance(restored[key], type(value))


@pytest.mark.parametrize(
    ("came", "wrote", "writes_now", "goes_out"),
    [
        ({"temperature": None}, {}, {"temperature": 0.5}, {"temperature": 0.5}),
        ({"tools": []}, {}, {"tools": ["t"]}, {"tools": ["t"]}),
        ({"top_k": 2.0}, {"top_k": 2}, {"top_k": 3}, {"top_k": 3}),
        ({"top_k": 2.0}, {"top_k": 2}, {"top_k": 2}, {"top_k": 2.0}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, {"a": {"b": 9}}, {"a": {"b": 9, "c": 2}}),
        ({"a": {"b": True}}, {"a": {"b": 1}}, {"a": {"b": 1}}, {"a": {"b": True}}),
    ],
)
def test_edits_override_the_overlay(
    came: dict[str, Any],
    wrote: dict[str, Any],
    writes_now: dict[str, Any],
    goes_out: dict[str, Any],
) -> None:
    """A field that was changed after decoding is written with its new value."""
    extras = overlay_of(came, (), NAME, wrote)
    written = with_overlay(writes_now, extras, NAME)
    assert written == goes_out
    assert repr(written) == repr(goes_out)


def test_extras_of_another_dialect_are_ignored() -> None:
    """Only the dialect's own extras are applied to a body."""
    extras = overlay_of({"odd": 1}, (), "another-dialect")
    assert with_overlay({"a": 1}, extras, NAME) == {"a": 1}
    assert fields_of(extras, NAME) == {}


@pytest.mark.parametrize("body", ["[1]", b"3", "{", b"\xff", "null"])
def test_a_body_that_is_no_object_is_a_wire_error(body: Any) -> None:
    """Text that is not a JSON object is refused, with the dialect's name."""
    with pytest.raises(WireError) as caught:
        parsed(body, NAME)
    assert caught.value.dialect == NAME


def test_a_type_error_names_the_field_only() -> None:
    """The error has the field and the expected type, and no value."""
    with pytest.raises(WireError, match=r"expected list at \$\.messages, found str") as caught:
        want({"messages": "a secret"}, "messages", list, NAME, "$")
    assert caught.value.path == "$.messages"
    assert "secret" not in str(caught.value)


def test_caches_of_names_are_bounded() -> None:
    """Extras with ever new names, as in stored rows or envelopes, don't fill memory."""
    for number in range(2000):
        assert overlay.has_overlay({f"made up {number}": {}}, f"made up {number}")
        assert list(overlay.kept_of_others({f"made up {number}": {"a": 1}}, "x"))
    caches = (overlay.spelling_key, overlay.overlay_keys, overlay_stored.old_keys)
    assert all(cached.cache_info().currsize <= 256 for cached in caches)
