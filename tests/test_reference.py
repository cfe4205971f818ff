"""The reference: made from docstrings that are there, whose examples are true."""

from __future__ import annotations

import doctest
import inspect
import pkgutil
import runpy
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import dragoman

ROOT = Path(__file__).resolve().parent.parent
GENERATOR: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "generate_reference.py"))
NAMES = [(module, name) for module, names in GENERATOR["by_module"]().items() for name in names]


def modules() -> list[str]:
    """The library's modules; the command line's start programs when imported."""
    found = pkgutil.walk_packages(dragoman.__path__, "dragoman.")
    return sorted(module.name for module in found if not module.name.startswith("dragoman.cli"))


def test_the_reference_is_current() -> None:
    """After a change of a signature or docstring: `make docs`."""
    written = (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
    assert written == GENERATOR["page"](), "docs/reference/index.md is out of date: run `make docs`"


def test_the_reference_shows_every_public_name() -> None:
    """Each under its own heading, once, by module."""
    headings = [
        line.removeprefix("### ")
        for line in GENERATOR["page"]().splitlines()
        if line.startswith("### ")
    ]
    assert headings == [name for _, name in NAMES]
    assert len(headings) > 150


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_every_public_member_is_documented(module: str, name: str) -> None:
    """Classes, functions, and the methods and properties of classes: a first sentence each."""
    value = getattr(import_module(module), name)
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return  # an alias: of a union of classes, each of which is documented, or of a callable
    assert GENERATOR["paragraph"](value)
    if inspect.isclass(value):
        for member, _, documented in GENERATOR["members"](value):
            assert GENERATOR["paragraph"](documented), f"{name}.{member} has no docstring"


@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings_are_true(name: str) -> None:
    """What they show is what happens."""
    result = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_there_are_examples() -> None:
    """The test above looks at something."""
    finder = doctest.DocTestFinder()
    found = [
        example
        for name in ("dragoman.model.messages", "dragoman.model.tools", "dragoman.model.store")
        for test in finder.find(import_module(name))
        for example in test.examples
    ]
    assert len(found) > 5
