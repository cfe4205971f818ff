"""Docstrings: which fields describe parameters, and which don't."""

from __future__ import annotations

import pytest

from dragoman.model.functions.docstrings import parse


@pytest.mark.parametrize(
    "field",
    [
        "except", "exception", "meta", "raise", "raises", "return", "returns", "rtype", "type",
        "vartype", "yield", "yields", "ytype",
    ],
)  # fmt: skip
def test_other_docstring_sections_are_ignored(field: str) -> None:
    """Other sections are part of neither the description nor a parameter."""
    found = parse(f"Looks it up.\n:{field} KeyError: Not known.\n:param city: Where.")
    assert found.description == "Looks it up."
    assert found.parameters == {"city": "Where."}


@pytest.mark.parametrize(
    "field", ["param", "parameter", "arg", "argument", "key", "keyword", "ivar", "var"]
)
def test_a_parameter_may_be_named_in_many_ways(field: str) -> None:
    """As Sphinx reads them."""
    assert parse(f"Looks it up.\n\n:{field} city: Where.").parameters == {"city": "Where."}
