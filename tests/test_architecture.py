"""Architecture rules that the import contracts in `pyproject.toml` can't express.

`lint-imports` enforces the layers. These tests find added modules and dialects by themselves.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import grimp
import pytest

import dragoman

pytestmark = pytest.mark.whole

ALLOWED = frozenset({"msgspec", "dragoman"}) | sys.stdlib_module_names
# Type checkers bring it along; tests/typing shows that nothing imports it at run time.
FOR_CHECKERS = ("dragoman.model.type_parameters", "typing_extensions")
# Imported when a cost is requested, and optional.
PRICES = ("dragoman.providers.genai_prices", "genai_prices")


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """The import graph, including imports in functions and under `TYPE_CHECKING`."""
    return grimp.build_graph("dragoman", include_external_packages=True, cache_dir=None)


@pytest.mark.parametrize("layer", ["errors", "model", "wire", "providers"])
def test_inner_layers_need_nothing_but_msgspec(graph: grimp.ImportGraph, layer: str) -> None:
    """Model and translation do no I/O and load fast: the standard library, msgspec, ourselves."""
    name = f"dragoman.{layer}"
    assert name in graph.modules
    modules = {name} | graph.find_descendants(name)
    imported = {
        (module, target)
        for module in modules
        for target in graph.find_modules_directly_imported_by(module)
        if target.partition(".")[0] not in ALLOWED
    }
    assert imported - {FOR_CHECKERS, PRICES} == set()


def test_dialects_are_independent(graph: grimp.ImportGraph) -> None:
    """A dialect is a folder of `dragoman.wire` with a `request` module."""
    dialects = {
        module.removesuffix(".request")
        for module in graph.modules
        if module.startswith("dragoman.wire.") and module.endswith(".request")
    }
    assert graph.find_illegal_dependencies_for_layers(layers=(dialects,)) == set()


def test_inner_layers_do_not_import_from_the_top(graph: grimp.ImportGraph) -> None:
    """`dragoman/__init__.py` imports everything, so a layer could reach those above it."""
    outer = ("dragoman.__main__", "dragoman.cli", "dragoman.gateway")
    importers = graph.find_modules_that_directly_import("dragoman")
    assert {module for module in importers if not module.startswith(outer)} == set()


def test_the_package_under_test_is_this_checkout() -> None:
    """An installed copy elsewhere would make every other test meaningless."""
    assert Path(dragoman.__file__).parent == Path(__file__).parent.parent / "src" / "dragoman"


# The table of the gateway's paths says whose clients ask there. Bridges to one library, and
# demonstrations, may name the dialect that they are for; and the reader of what version 1 stored,
# the two whose notes had keys of their own.
BRIDGES = (
    "interop/",
    "cli/tour.py",
    "cli/tour_gateway.py",
    "providers/",
    "wire/overlay_stored.py",
    "gateway/endpoints.py",
)


def test_only_dialects_name_dialects() -> None:
    """Others use its `Description` and its attributes."""
    source = Path(dragoman.__file__).parent
    folders = tuple(f"wire/{name.replace('-', '_')}/" for name in dragoman.dialects())
    named = [
        (module, node.value)
        for path in source.rglob("*.py")
        if not (module := path.relative_to(source).as_posix()).startswith((*folders, *BRIDGES))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in dragoman.dialects()
    ]
    assert named == []


def test_the_architecture_page_names_existing_modules() -> None:
    """Every path and function on it exists."""
    root = Path(__file__).parent.parent
    page = (root / "docs" / "contributing" / "architecture.md").read_text(encoding="utf-8")
    source = root / "src" / "dragoman"
    folders = (source, source / "wire", source / "wire" / "anthropic")
    paths = set(re.findall(r"`((?!tests)[a-z_/]+\.py)`", page))
    assert len(paths) > 30
    missing = {path for path in paths if not any((folder / path).exists() for folder in folders)}
    # Other dialects': parts that aren't on rows yet, and an example of a second file.
    assert missing == {"content.py", "content_media.py"}
    code = "".join(path.read_text(encoding="utf-8") for path in source.rglob("*.py"))
    walks = page[page.index("## The path of a request") :]
    named = {name.rpartition(".")[2] for name in re.findall(r"`([A-Za-z_.]+)`", walks)}
    functions = {name for name in named if "_" in name.strip("_") and not name.endswith("py")}
    unknown = {name for name in functions if not re.search(rf"\b{name}\b", code)}
    assert len(functions) > 15
    assert unknown == set()
