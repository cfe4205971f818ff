"""The tools of a chat: the built-in ones, and those that the user loads."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import isfunction
from pathlib import Path
from types import ModuleType
from typing import Any

from dragoman.agent.harmless_tools import calculate, now
from dragoman.cli.exit_codes import USAGE, Ending
from dragoman.errors import DragomanError
from dragoman.model.functions.tool import Tool, tool

BUILT_IN = "builtin"
_DEFINES = re.compile(r"^\s*(?:async\s+)?def\s+\w+\s*\(", re.MULTILINE)
"""Matches Python source that defines functions, as opposed to a file or module name."""

# --- the user's


def tools_named(names: tuple[str, ...]) -> list[Tool[..., Any]]:
    """The tools from files (`FILE.py`), modules (`module:name`), Python source, or `builtin`."""
    found: dict[str, Tool[..., Any]] = {}
    for name in names:
        for each in _tools_of(name):
            if found.get(each.name, each) is not each:
                raise Ending(USAGE, f"{name}: there is already a tool named {each.name}")
            found[each.name] = each
    return [*found.values()]


def _tools_of(name: str) -> list[Tool[..., Any]]:
    if name == BUILT_IN:
        return [now, calculate]
    is_file = name.endswith(".py")
    if _DEFINES.search(name):
        loaded, name, attribute = _loaded("--tools", _run_text, name), "--tools", ""
    else:
        module, _, attribute = (name, "", "") if is_file else name.partition(":")
        loaded = _loaded(name, _run_file if is_file else _import, module)
    if not attribute:
        made = [_made(name, each) for each in _offered(loaded)]
    else:
        given = getattr(loaded, attribute, None)
        if given is None:
            raise Ending(USAGE, f"{name}: the module has no such attribute")
        made = [_made(name, each) for each in (given if _is_list(given) else [given])]
    if not made:
        raise Ending(USAGE, f"{name}: contains no tools: public functions, or functions with @tool")
    return made


def _is_list(given: Any) -> bool:
    return isinstance(given, (list, tuple))


def _loaded(name: str, load: Callable[[str], ModuleType], place: str) -> ModuleType:
    """The module; an exception in the user's code is reported by type and line only."""
    try:
        return load(place)
    except FileNotFoundError:
        problem = "there is no such file"
    except ModuleNotFoundError as error:
        problem = f"there is no module {error.name}"
    except SyntaxError as error:
        problem = f"is not valid Python (line {error.lineno})"
    except Exception as error:  # noqa: BLE001 - it is the user's code: it may raise anything
        frames = traceback.extract_tb(error.__traceback__)
        line = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        problem = f"can't be loaded ({type(error).__name__}{line})"
    raise Ending(USAGE, f"{name}: {problem}")


def _run_file(name: str) -> ModuleType:
    path = Path(name).expanduser().absolute()
    if not path.is_file():
        raise FileNotFoundError
    spec = spec_from_file_location(f"dragoman_tools_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # annotations are resolved there
    sys.path.insert(0, str(path.parent))  # modules beside it can be imported, as in a script
    spec.loader.exec_module(module)
    return module


def _run_text(text: str) -> ModuleType:
    """A module of functions written on the command line."""
    module = ModuleType("dragoman_tools_typed")
    sys.modules[module.__name__] = module  # annotations are resolved there
    exec(compile(text, "--tools", "exec"), vars(module))  # noqa: S102 - what the user typed
    return module


def _import(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    return import_module(name)


def _offered(module: ModuleType) -> Iterator[Any]:
    """The tools of a module: those made by `@tool`, or else its public functions."""
    public = {name: each for name, each in vars(module).items() if not name.startswith("_")}
    made = [each for each in public.values() if isinstance(each, Tool)]
    own = (f for f in public.values() if isfunction(f) and f.__module__ == module.__name__)
    yield from made or own


def _made(name: str, each: Any) -> Tool[..., Any]:
    if isinstance(each, Tool):
        return each
    if not callable(each):
        raise Ending(USAGE, f"{name}: a tool must be a function, not {type(each).__name__}")
    try:
        return tool(each)
    except DragomanError as error:
        problem = str(error)
    raise Ending(USAGE, f"{name}: {problem}")
