"""Every reported bug of the table, for each of its targets."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from tests.peers.rows import Row, outcome

TABLE: dict[str, tuple[Row, ...]] = {
    path.stem: found
    for path in sorted(Path(__file__).parent.glob("*.py"))
    if not path.stem.startswith(("_", "test_"))
    and (found := getattr(import_module(f"tests.peers.{path.stem}"), "ROWS", ()))
}
"""The rows by subject."""

pytestmark = pytest.mark.whole


@pytest.mark.parametrize(
    ("row", "target"),
    [
        pytest.param(row, target, id=f"{subject}-{number}-{target}")
        for subject, rows in TABLE.items()
        for number, row in enumerate(rows)
        for target in row.targets
    ],
)
def test_what_was_reported(row: Row, target: str) -> None:
    """The sentence of the row holds."""
    found = outcome(row, target)
    for claim in row.holds:
        claim(found)


def test_rows_say_what_and_where() -> None:
    """Each row has a sentence of its own, and where it was reported."""
    rows = [row for rows in TABLE.values() for row in rows]
    assert len({row.what for row in rows}) == len(rows)
    assert all(row.reported and row.holds for row in rows)
