"""`make test` runs a sample of large tables, in which every dialect and every backend stays."""

from __future__ import annotations

from itertools import product

import pytest

from tests.sampling import BACKENDS, Case, sample

_NONE: frozenset[str] = frozenset()


def test_small_tables_are_run_whole() -> None:
    """Three cases are not sampled."""
    assert sample([Case({"row": row}, _NONE) for row in range(3)]) == {0, 1, 2}


def test_a_large_table_keeps_its_first_middle_and_last_row() -> None:
    """Whatever its size: three rows."""
    assert sample([Case({"row": row}, _NONE) for row in range(100)]) == {0, 50, 99}


def test_tables_that_are_multiplied_share_their_cases() -> None:
    """A case covers a value of each table, so that 20 by 30 cases need three."""
    cases = [
        Case({"row": row, "column": column}, _NONE) for row in range(20) for column in range(30)
    ]
    chosen = [cases[number].places for number in sample(cases)]
    assert {case["row"] for case in chosen} == {0, 10, 19}
    assert {case["column"] for case in chosen} == {0, 15, 29}
    assert len(chosen) == 3


def test_every_name_stays() -> None:
    """A sample names each dialect as a source and as a target, in five of 25 cases."""
    names = ["a", "b", "c", "d", "e"]
    cases = [
        Case({"source": x, "target": y}, frozenset({f"source={names[x]}", f"target={names[y]}"}))
        for x, y in product(range(5), repeat=2)
    ]
    chosen = sample(cases)
    assert {name for number in chosen for name in cases[number].names} == {
        name for case in cases for name in case.names
    }
    assert len(chosen) == 5


def test_a_table_with_a_gap_is_sampled_too() -> None:
    """Rows that run elsewhere (slow ones) may be missing at either end."""
    assert len(sample([Case({"row": row}, _NONE) for row in range(7, 20)])) == 3


@pytest.mark.whole
@pytest.mark.parametrize("row", range(5))
def test_whole_tables_are_never_sampled(row: int, request: pytest.FixtureRequest) -> None:
    """The marker `whole` keeps each row in the default run."""
    assert request.node.get_closest_marker("thorough") is None, row


@pytest.mark.parametrize("row", range(5))
def test_hostile_input_is_never_sampled(row: int, request: pytest.FixtureRequest) -> None:
    """The name says it: attacks and mistakes are all tried."""
    assert request.node.get_closest_marker("thorough") is None, row


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("row", range(50))
def test_hostile_input_on_backends(row: int, backend: str, request: pytest.FixtureRequest) -> None:
    """Each case is tried on one backend, and each backend with some."""
    table = [
        (item.callspec.params["row"], item.callspec.params["backend"])
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.originalname == "test_hostile_input_on_backends"
        and item.get_closest_marker("thorough") is None
    ]
    assert {number for number, _ in table} == set(range(50))
    assert {name for _, name in table} == set(BACKENDS)
    assert len(table) < 100
    assert (row, backend) in table or request.node.get_closest_marker("thorough") is not None


@pytest.mark.parametrize("column", range(7))
@pytest.mark.parametrize("row", range(9))
def test_each_parameter_is_sampled(row: int, column: int, request: pytest.FixtureRequest) -> None:
    """Of two tables that are multiplied, three values each stay, in three cases."""
    is_left_out = request.node.get_closest_marker("thorough") is not None
    assert is_left_out == ((row, column) not in {(0, 0), (4, 3), (8, 6)})


@pytest.mark.parametrize("row", range(9))
def test_the_rest_is_thorough(row: int, request: pytest.FixtureRequest) -> None:
    """What a sample leaves out runs with `make test-thorough`, not nowhere."""
    is_left_out = request.node.get_closest_marker("thorough") is not None
    assert is_left_out == (row not in {0, 4, 8})


def test_backends_have_names() -> None:
    """The names that a sample must contain are found: a folder that moves would empty them."""
    assert {"memory", "files", "sqlite", "postgres", "redis"} < set(BACKENDS)
