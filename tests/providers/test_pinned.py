"""Every flag of every provider has the value that somebody wrote down."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.providers.pinned import TABLE, pinned

pytestmark = pytest.mark.whole

EXPECTED: dict[str, Any] = json.loads(TABLE.read_text())
_ADVICE = "if it is meant: python -m tests.providers.pinned, and read the difference"


@pytest.mark.parametrize("name", sorted({*EXPECTED, *pinned()}))
def test_no_flag_changes_unnoticed(name: str) -> None:
    """A flag that is flipped, a default, an address, a variable's name, a family's row."""
    assert pinned().get(name) == EXPECTED.get(name), _ADVICE


def test_the_table_holds_flags_of_every_group() -> None:
    """Otherwise it would agree with anything."""
    assert {"turns", "thinking", "schemas", "fields"} <= EXPECTED["defaults"].keys()
    assert EXPECTED["defaults"]["turns"]["takes_developer"] is True
    assert EXPECTED["provider groq"]["targets"][0]["turns.takes_developer"] is False
