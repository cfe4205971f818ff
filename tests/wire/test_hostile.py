"""For any input, a decoder returns a value or raises `WireError`, and nothing else."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.errors import WireError

pytestmark = pytest.mark.whole

FIXTURES = Path(__file__).parent.parent / "fixtures"

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.sampled_from(["text", "user", "assistant", "tool", "function", "object", "\ud800", "\x00"]),
)
json_values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=10,
)


@cache
def _wires(dialect: str) -> list[tuple[str, dict[str, Any]]]:
    """The request and response bodies in our own fixtures."""
    found = []
    for file in sorted((FIXTURES / dialect).glob("*.json")):
        fixture = json.loads(file.read_text(encoding="utf-8"))
        found.append((fixture["canonical"]["kind"].lower(), fixture["wire"]))
    return found


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    places = [path]
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in items:
        places += _places(inner, (*path, key))
    return places


def _put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    changed = copy.deepcopy(value)
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = new
    return changed


def _take(dialect: str, kind: str, body: Any) -> None:
    """Decode and encode again; a `WireError` is acceptable."""
    speaker = dragoman.dialect(dialect)
    with suppress(WireError):
        if kind == "request":
            speaker.encode_request(
                speaker.decode_request(body, path="/v1beta/models/m:generateContent")
            )
        else:
            speaker.encode_response(speaker.decode_response(body))


@pytest.mark.parametrize("kind", ["request", "response"])
@pytest.mark.parametrize("dialect", dragoman.dialects())
@given(body=json_values)
def test_any_json_is_a_value_or_a_wire_error(dialect: str, kind: str, body: Any) -> None:
    """Random JSON raises no exception other than `WireError`."""
    _take(dialect, kind, json.dumps(body))


@pytest.mark.parametrize("kind", ["request", "response"])
@pytest.mark.parametrize("dialect", dragoman.dialects())
@given(body=st.binary(max_size=60))
def test_any_bytes_are_a_value_or_a_wire_error(dialect: str, kind: str, body: bytes) -> None:
    """Random bytes raise no exception other than `WireError`."""
    _take(dialect, kind, body)


@pytest.mark.parametrize("dialect", dragoman.dialects())
@given(data=st.data())
def test_a_body_with_one_wrong_value_is_a_value_or_a_wire_error(
    dialect: str, data: st.DataObject
) -> None:
    """A real body with any one value replaced raises no other exception."""
    kind, wire = data.draw(st.sampled_from(_wires(dialect)))
    path = data.draw(st.sampled_from(_places(wire)))
    _take(dialect, kind, _put(wire, path, data.draw(json_values)))
