"""The docs list every attack on the page that is tested, by name."""

from __future__ import annotations

from tests.gateway.page.attack_table import PAGE, written


def test_docs_list_every_attack_with_its_outcome() -> None:
    """The tables are those of the tests: `python -m tests.gateway.page.attack_table`."""
    text = PAGE.read_text()
    assert text == written(text)
