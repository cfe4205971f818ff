"""What the import contracts in `pyproject.toml` can't say: rules without a list of names.

`lint-imports` enforces the layers. Here, whatever module or dialect is added is found by itself.
"""

from __future__ import annotations

import sys
from pathlib import Path

import grimp
import pytest

import dragoman

ALLOWED = frozenset({"msgspec", "dragoman"}) | sys.stdlib_module_names


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Who imports whom, in functions and under `TYPE_CHECKING` too."""
    return grimp.build_graph("dragoman", include_external_packages=True, cache_dir=None)


@pytest.mark.parametrize("layer", ["errors", "model", "wire", "providers"])
def test_inner_layers_need_nothing_but_msgspec(graph: grimp.ImportGraph, layer: str) -> None:
    """Values and translation do no I/O and load fast: the standard library, msgspec, ourselves."""
    name = f"dragoman.{layer}"
    assert name in graph.modules
    modules = {name} | graph.find_descendants(name)
    imported = {
        (module, target)
        for module in modules
        for target in graph.find_modules_directly_imported_by(module)
        if target.partition(".")[0] not in ALLOWED
    }
    assert imported == set()


def test_dialects_are_independent(graph: grimp.ImportGraph) -> None:
    """A dialect is a folder of `dragoman.wire` that holds a `request` module."""
    dialects = {
        module.removesuffix(".request")
        for module in graph.modules
        if module.startswith("dragoman.wire.") and module.endswith(".request")
    }
    assert graph.find_illegal_dependencies_for_layers(layers=(dialects,)) == set()


def test_inner_layers_do_not_import_from_the_top(graph: grimp.ImportGraph) -> None:
    """`dragoman/__init__.py` leads everywhere: through it a layer could reach what is above it."""
    outer = ("dragoman.__main__", "dragoman.cli", "dragoman.gateway")
    importers = graph.find_modules_that_directly_import("dragoman")
    assert {module for module in importers if not module.startswith(outer)} == set()


def test_the_package_under_test_is_this_checkout() -> None:
    """An installed copy elsewhere would make every other test lie."""
    assert Path(dragoman.__file__).parent == Path(__file__).parent.parent / "src" / "dragoman"
