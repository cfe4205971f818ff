"""The tools of a chat: its own harmless ones, and those that the user brings along."""

from __future__ import annotations

import ast
import operator
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from datetime import datetime
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from inspect import isfunction
from pathlib import Path
from types import ModuleType
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from dragoman.cli.exit_codes import USAGE, Ending
from dragoman.errors import DragomanError, ToolRetry
from dragoman.model.functions.tool import Tool, tool

BUILT_IN = "builtin"
_MOST_BITS = 10_000
_LONGEST = 200
_DEFINES = re.compile(r"^\s*(?:async\s+)?def\s+\w+\s*\(", re.MULTILINE)
"""Python that defines functions, and no name of a file or a module."""

# --- our own


@tool
def now(timezone: str = "") -> str:
    """The date and the time.

    Args:
        timezone: Where, such as Europe/Zurich or Tokyo; by default here.
    """
    there = _zone(timezone.strip()) if timezone.strip() else None
    moment = datetime.now(there) if there else datetime.now().astimezone()
    return f"{moment:%A, %d %B %Y, %H:%M:%S} ({moment.tzname()})"


def _zone(name: str) -> ZoneInfo:
    """A time zone by its name, or by that of a city in it, which small models name."""
    city = name.rpartition(",")[0] or name
    wanted = city.rpartition("/")[2].strip().replace(" ", "_").lower()
    named = [each for each in available_timezones() if each.rpartition("/")[2].lower() == wanted]
    try:
        return ZoneInfo(name if name in available_timezones() else min(named, key=len))
    except (KeyError, OSError, ValueError):
        msg = "there is no such time zone; name one as in Europe/Zurich"
        raise ToolRetry(msg) from None


@tool
def calculate(expression: str) -> str:
    """The value of an arithmetic expression.

    Args:
        expression: Numbers and + - * / // % ** ( ), such as 6 * (7 + 1).
    """
    if len(expression) > _LONGEST:
        msg = f"an expression has no more than {_LONGEST} characters"
        raise ToolRetry(msg)
    try:
        parsed = ast.parse(expression.strip(), mode="eval")
        return str(_value(parsed.body))
    except ZeroDivisionError:
        problem = "that divides by zero"
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        problem = "that is no arithmetic expression that can be calculated"
    raise ToolRetry(problem)


_OPERATIONS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}


def _value(node: ast.AST) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=op, operand=operand):
            return _done(op, _value(operand))
        case ast.BinOp(left=left, op=op, right=right):
            return _done(op, _value(left), _value(right))
        case _:
            raise ValueError


def _done(op: ast.AST, *numbers: float) -> float:
    if isinstance(op, ast.Pow) and _bits(*numbers) > _MOST_BITS:
        raise OverflowError
    result = _OPERATIONS[type(op)](*numbers) if type(op) in _OPERATIONS else None
    if not isinstance(result, (int, float)):  # the root of a negative number, say
        raise ValueError  # noqa: TRY004 - all that is no number here is one thing to the caller
    return result


def _bits(base: float, exponent: float) -> float:
    return base.bit_length() * abs(exponent) if isinstance(base, int) else 0


# --- the user's


def tools_named(names: tuple[str, ...]) -> list[Tool[..., Any]]:
    """The tools in files (`FILE.py`), in modules (`module:name`), in Python, or `builtin`."""
    found: dict[str, Tool[..., Any]] = {}
    for name in names:
        for each in _tools_of(name):
            if found.get(each.name, each) is not each:
                raise Ending(USAGE, f"{name}: there are two tools of the name {each.name}")
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
            raise Ending(USAGE, f"{name}: the module has nothing of that name")
        made = [_made(name, each) for each in (given if _is_list(given) else [given])]
    if not made:
        raise Ending(USAGE, f"{name}: there is no tool in it: a function, or one made by @tool")
    return made


def _is_list(given: Any) -> bool:
    return isinstance(given, (list, tuple))


def _loaded(name: str, load: Callable[[str], ModuleType], place: str) -> ModuleType:
    """A module; what the user's own code raises is told by its kind and its line."""
    try:
        return load(place)
    except FileNotFoundError:
        problem = "there is no such file"
    except ModuleNotFoundError as error:
        problem = f"there is no module {error.name}"
    except SyntaxError as error:
        problem = f"is not Python (line {error.lineno})"
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
    sys.modules[spec.name] = module  # annotations are looked up there
    sys.path.insert(0, str(path.parent))  # what lies beside it can be imported, as in a script
    spec.loader.exec_module(module)
    return module


def _run_text(text: str) -> ModuleType:
    """Functions that are written on the command line itself."""
    module = ModuleType("dragoman_tools_typed")
    sys.modules[module.__name__] = module  # annotations are looked up there
    exec(compile(text, "--tools", "exec"), vars(module))  # noqa: S102 - what the user typed
    return module


def _import(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    return import_module(name)


def _offered(module: ModuleType) -> Iterator[Any]:
    """What a module has for tools: those made by `@tool`, or else its own public functions."""
    public = {name: each for name, each in vars(module).items() if not name.startswith("_")}
    made = [each for each in public.values() if isinstance(each, Tool)]
    own = (f for f in public.values() if isfunction(f) and f.__module__ == module.__name__)
    yield from made or own


def _made(name: str, each: Any) -> Tool[..., Any]:
    if isinstance(each, Tool):
        return each
    if not callable(each):
        raise Ending(USAGE, f"{name}: a tool is a function, not a {type(each).__name__}")
    try:
        return tool(each)
    except DragomanError as error:
        problem = str(error)
    raise Ending(USAGE, f"{name}: {problem}")
