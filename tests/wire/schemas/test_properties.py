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
    """The compiled schema; one that grows too large is skipped."""
    try:
        return compiled(schema, profile)
    except InvalidInputError as error:
        if "is too complex" in str(error):
            reject()
        raise


@pytest.mark.parametrize("name", _NAMES)
@given(schema=roots())
def test_the_target_accepts_it(name: str, schema: dict[str, Any]) -> None:
    """The result meets the target's rules, and the original is unchanged."""
    before = copy.deepcopy(schema)
    made = projected(schema, PROFILES[name])
    assert schema == before
    assert refusals(made.schema, name) == []


@pytest.mark.parametrize("name", _NAMES)
@given(schema=roots())
def test_compilation_is_idempotent(name: str, schema: dict[str, Any]) -> None:
    """Compiling a compiled schema changes nothing, and is deterministic."""
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
def test_restored_values_match_the_original(name: str, schema: dict[str, Any], seed: int) -> None:
    """Without a loss, any valid answer matches the original after restoring."""
    made = projected(schema, PROFILES[name])
    if made.is_exact and not spins(schema):
        for value in instances(made.schema, seed):
            assert misfits(schema, made.undo(value)) == []


@pytest.mark.parametrize("name", _NAMES)
@given(schema=roots(), value=JSON)
def test_anything_can_be_restored(name: str, schema: dict[str, Any], value: Any) -> None:
    """Restoring accepts any JSON, changes nothing in place, and returns JSON."""
    before = copy.deepcopy(value)
    undone = projected(schema, PROFILES[name]).undo(value)
    assert value == before
    dumps(undone)
