"""The public names: which they are, where they come from, and what importing them loads."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import pytest

import dragoman

pytestmark = pytest.mark.whole

# Adding a name here is a promise to keep it; removing one breaks somebody's program.
PUBLIC = """
    Agent Audio ChatHistory ChatHistoryConfig Context ConversationHistory DragomanError Encoded File
    FinishReason Front Image Loss Message MessageAccumulator MessageStore Messages Model Opaque
    Orchestrator Output Policy Provider Refusal Repair Request Response Result Role RunContext
    RunLimits Section ServerToolCall ServerToolResult SessionIdentity Target Text Thinking ToolCall
    ToolCallDelta ToolDefinition ToolExecutor ToolResult Usage Video Violation __version__ check
    detect dialect dialects estimate_tokens open_model provider reveal run_sync tool translate
""".split()  # noqa: SIM905 - 57 lines of one word each would be harder to read
PACKAGES = ("", ".agent", ".history", ".mcp", ".model", ".providers", ".transport", ".wire")

THIRD_PARTY = """
import sys
before = set(sys.modules)
{}
loaded = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(*sorted(loaded - sys.stdlib_module_names - {{"dragoman"}}))
"""


def loaded_by(code: str) -> set[str]:
    """The third-party packages that a fresh interpreter loads for this code."""
    program = THIRD_PARTY.format(code)
    # -S skips the start-up code of site-packages; the paths are passed on.
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{program}"],
        capture_output=True, check=True, text=True, timeout=60,
    )  # fmt: skip
    return set(run.stdout.split())


def imported_for_type_checkers(package: ModuleType) -> dict[str, str]:
    """The names under `if TYPE_CHECKING:`, with the modules they come from."""
    tree = ast.parse(Path(package.__file__ or "").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.name: node.module or ""
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_the_public_names_are_pinned() -> None:
    """Exactly these, sorted, each once."""
    assert dragoman.__all__ == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_resolves(name: str) -> None:
    """To an object that is not a module, and to the same one each time."""
    found = getattr(dragoman, name)
    assert found is getattr(dragoman, name)
    assert type(found).__name__ != "module"


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_see_the_same_names_from_the_same_places(package: str) -> None:
    """Lazily resolved names, imports for type checkers and `__all__` agree."""
    module = import_module(f"dragoman{package}")
    homes = {
        name: f"{module.__name__}.{home}" for home, names in module._HOMES.items() for name in names
    }
    assert imported_for_type_checkers(module) == homes
    public = [name for name in module.__all__ if name != "__version__"]
    assert sorted(homes) == sorted(public)


@pytest.mark.parametrize("package", [*PACKAGES, ".errors", ".events", ".testing", ".tools"])
def test_no_public_name_is_shadowed_by_a_module(package: str) -> None:
    """A submodule of the same name would replace it once imported."""
    module = import_module(f"dragoman{package}")
    below = {each.name for each in iter_modules(getattr(module, "__path__", []))}
    assert below.isdisjoint(module.__all__)
    for name in module.__all__:
        assert not isinstance(getattr(module, name), ModuleType)


def test_all_errors_are_in_one_module() -> None:
    """The base of all is at the top level as well."""
    from dragoman import errors

    assert dragoman.DragomanError is errors.DragomanError
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), dragoman.DragomanError)


def test_submodules_are_found_without_importing_them() -> None:
    """`dragoman.errors.RateLimited` works after `import dragoman`."""
    code = "import dragoman; print(dragoman.errors.RateLimited.__name__, dragoman.testing.__name__)"
    assert subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True, timeout=60
    ).stdout == "RateLimited dragoman.testing\n"  # fmt: skip


@pytest.mark.parametrize("home", dragoman._MOVED)
def test_former_top_level_names_still_work(home: str) -> None:
    """With a warning that says where they are now."""
    module = import_module(f"dragoman.{home}")
    for name in dragoman._MOVED[home]:
        assert name not in dir(dragoman)
        with pytest.warns(DeprecationWarning, match=f"from dragoman.{home} import {name}"):
            assert getattr(dragoman, name) is getattr(module, name)


def test_dir_lists_the_public_names() -> None:
    """Even before any of them has been used."""
    assert set(PUBLIC) <= set(dir(dragoman))
    fresh = "import dragoman; print(set(dragoman.__all__) <= set(dir(dragoman)))"
    assert subprocess.run(
        [sys.executable, "-c", fresh], capture_output=True, check=True, text=True, timeout=60
    ).stdout == "True\n"  # fmt: skip


def test_unknown_names_are_attribute_errors() -> None:
    """As in any module."""
    with pytest.raises(AttributeError, match="module 'dragoman' has no attribute 'Nonsense'"):
        _ = dragoman.Nonsense
    with pytest.raises(ImportError):
        exec("from dragoman import Nonsense", {})  # noqa: S102 - a type checker would refuse it


def test_importing_loads_nothing_but_msgspec() -> None:
    """Neither the package nor all of its public names need another package."""
    msgspec = loaded_by("import msgspec, msgspec.json")  # and typing_extensions, if it is installed
    assert "msgspec" in msgspec
    assert loaded_by("import dragoman") <= msgspec
    assert loaded_by("from dragoman import *") <= msgspec


def test_using_messages_does_not_load_the_wire() -> None:
    """Names are resolved one by one: using only the model loads only the model."""
    code = "import sys, dragoman; dragoman.Message; print('dragoman.wire' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True, timeout=60
    )
    assert run.stdout == "False\n"
