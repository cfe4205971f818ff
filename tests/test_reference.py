"""The reference: every public name is on a page and documented, and the examples are correct."""

from __future__ import annotations

import doctest
import inspect
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.wire.flags import Flags

pytestmark = pytest.mark.whole

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "reference" / "python"
MODULES = (  # those that users import from
    "", "agent", "errors", "events", "gateway.middleware", "history", "history.truncation",
    "interop", "mcp", "model", "providers", "testing", "tools", "transport", "wire",
)  # fmt: skip
BESIDES = ("dragoman.agent.options.", "dragoman.wire.flags.")  # shown, though nobody imports them
_DIRECTIVE = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)


def by_module() -> dict[str, list[str]]:
    """The public names of each module; a name in several modules belongs to the first."""
    seen: set[int] = set()
    found: dict[str, list[str]] = {}
    for short in MODULES:
        name = f"dragoman.{short}".rstrip(".")
        module = import_module(name)
        own = [each for each in module.__all__ if not each.startswith("_")]
        found[name] = [each for each in own if id(getattr(module, each)) not in seen]
        seen |= {id(getattr(module, each)) for each in own}
    return found


NAMES = [(module, name) for module, names in by_module().items() for name in names]


def directives() -> list[str]:
    """The names on the reference's pages, as given to mkdocstrings; without modules."""
    pages = sorted(PAGES.glob("*.md"))
    found = [name for page in pages for name in _DIRECTIVE.findall(page.read_text("utf-8"))]
    return [name for name in found if name not in by_module()]


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class, or of its base classes in this library."""
    values: tuple[str, ...] = getattr(kind, "__struct_fields__", ())
    for name in sorted(dir(kind)):
        if name.startswith("_") or name in values:
            continue
        owner = next(base for base in kind.__mro__ if name in vars(base))
        if not owner.__module__.startswith("dragoman."):
            continue
        member = vars(owner)[name]
        if isinstance(member, classmethod | staticmethod):
            yield name, member.__func__
        elif inspect.isfunction(member):
            yield name, member
        elif hasattr(member, "__get__") and not inspect.ismemberdescriptor(member):
            yield name, getattr(member, "fget", None) or getattr(member, "func", member)


def modules() -> list[str]:
    """The library's modules, without those of the CLI that start programs when imported."""
    found = pkgutil.walk_packages(dragoman.__path__, "dragoman.")
    return sorted(module.name for module in found if not module.name.startswith("dragoman.cli"))


def has_examples(name: str) -> bool:
    """Whether a module's source has a doctest."""
    found = find_spec(name)
    assert found is not None
    assert found.origin is not None
    return ">>> " in Path(found.origin).read_text(encoding="utf-8")


def test_the_reference_shows_every_public_name() -> None:
    """Each on one page, under the module to import it from."""
    found = [name for name in directives() if not name.startswith(BESIDES)]
    assert sorted(found) == sorted(f"{module}.{name}" for module, name in NAMES)
    assert len(found) > 150


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_names_are_below_their_module(page: Path) -> None:
    """A heading `From …` says where the names below it are imported from."""
    module = ""
    for line in page.read_text("utf-8").splitlines():
        if line.startswith("## "):
            found = re.fullmatch(r"## From `([\w.]+)`", line)
            module = found[1] if found else ""
        elif line.startswith("::: "):
            name = line.removeprefix("::: ")
            is_besides = name.startswith(BESIDES) or name in by_module()
            assert name.rpartition(".")[0] == module or (not module and is_besides)


def test_the_reference_shows_every_flag_of_a_target() -> None:
    """Authors of dialects find all groups."""
    defaults = [each.default for each in inspect.signature(dragoman.Target).parameters.values()]
    groups = [
        f"dragoman.wire.flags.{type(each).__name__}" for each in defaults if isinstance(each, Flags)
    ]
    assert [name for name in directives() if name.startswith("dragoman.wire.flags.")] == groups


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_every_public_member_is_documented(module: str, name: str) -> None:
    """Classes, functions, and the methods and properties of classes have a first sentence."""
    value = getattr(import_module(module), name)
    if not (inspect.isclass(value) or inspect.isroutine(value)):
        return  # an alias: of a union of classes, each of which is documented, or of a callable
    assert inspect.getdoc(value)
    if inspect.isclass(value):
        for member, documented in members(value):
            assert documented.__doc__, f"{name}.{member} has no docstring"


@pytest.mark.parametrize("name", [name for name in modules() if has_examples(name)])
def test_examples_in_docstrings_are_correct(name: str) -> None:
    """They print what they show."""
    result = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_there_are_examples() -> None:
    """The test above has something to check."""
    finder = doctest.DocTestFinder()
    found = [
        example
        for name in ("dragoman.model.messages", "dragoman.model.tools", "dragoman.model.store")
        for test in finder.find(import_module(name))
        for example in test.examples
    ]
    assert len(found) > 5
