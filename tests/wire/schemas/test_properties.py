"""Properties that hold for any schema."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st

from dragoman.errors import InvalidInputError
from dragoman.model.jsontext import dumps
from dragoman.wire.schemas import PROFILES, Profile, Projection
from dragoman.wire.schemas import projected as compiled
from tests.wire.schemas.acceptance import refusals
from tests.wire.schemas.instances import instances, misfits, spins
from tests.wire.schemas.strategies import JSON, roots

_NAMES = sorted(PROFILES)


def projected(schema: Any, profile: Profile) -> Projection:
    """The projection; a schema that would grow without measure is refused, and another is tried."""
    try:
        return compiled(schema, profile)
    except InvalidInputError as error:
        if "is too complex" in str(error):
            reject()
        raise


@pytest.mark.parametrize("name", _NAMES)
@given(schema=roots())
def test_the_target_takes_it(name: str, schema: dict[str, Any]) -> None:
    """What comes out keeps to the target's rules, and the original is not touched."""
    before = copy.deepcopy(schema)
    made = projected(schema, PROFILES[name])
    assert schema == before
    assert refusals(made.schema, name) == []


@pytest.mark.parametrize("name", _NAMES)
@given(schema=roots())
def test_a_second_time_changes_nothing(name: str, schema: dict[str, Any]) -> None:
    """A projected schema is its own projection, and is made the same each time."""
    profile = PROFILES[name]
    made = projected(schema, profile)
    again = projected(made.schema, profile)
    assert again.schema == made.schema
    assert not again.changes_values
    assert dumps(projected(copy.deepcopy(schema), profile).schema) == dumps(made.schema)


@pytest.mark.thorough
@pytest.mark.parametrize("name", _NAMES)
@settings(max_examples=settings().max_examples * 4)  # most schemas are not exact
@example(schema={"oneOf": [{"type": "null"}, {"enum": [None, {"a": 1}]}]}, seed=0)
@given(schema=roots(), seed=st.integers(0, 1000))
def test_what_fits_fits_the_original(name: str, schema: dict[str, Any], seed: int) -> None:
    """Without a loss, whatever the target may answer fits the original once it is undone."""
    made = projected(schema, PROFILES[name])
    if made.is_exact and not spins(schema):
        for value in instances(made.schema, seed):
            assert misfits(schema, made.undo(value)) == []


@pytest.mark.parametrize("name", _NAMES)
@given(schema=roots(), value=JSON)
def test_anything_can_be_undone(name: str, schema: dict[str, Any], value: Any) -> None:
    """Undoing takes any JSON, changes nothing in place, and gives JSON."""
    before = copy.deepcopy(value)
    undone = projected(schema, PROFILES[name]).undo(value)
    assert value == before
    dumps(undone)
