"""Writes `docs/reference/index.md` from the docstrings of the public names: `make docs`.

Only the standard library, msgspec, mcp and the package itself; the same input gives the same bytes.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from enum import Enum
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec import UNSET

import dragoman
from dragoman.agent.options import Settings
from dragoman.wire.flags import Flags

_SETTINGS = inspect.Parameter(
    "settings", inspect.Parameter.VAR_KEYWORD, annotation="Unpack[Settings]"
)
PAGE = Path(__file__).parent / "reference" / "index.md"

INTRO = """\
# Reference

Every public name, by the module to import it from. Made from the docstrings by `make docs`; do not
edit.
"""
MODULES = (
    "", "agent", "errors", "events", "history", "history.truncation", "mcp", "model", "providers",
    "testing", "tools", "transport", "wire",
)  # fmt: skip

# Defaults that are objects print an address or a long text; the reader needs neither.
_ADDRESS = re.compile(r"<(?:[\w.]+\.)?(\w+)[^<>]*? at 0x[0-9a-f]+>")
_MODULES = re.compile(r"\b(?:dragoman|collections|typing|msgspec)(?:\.\w+)*\.(?=\w)")


def page() -> str:
    """The whole page."""
    return INTRO + "".join(f"\n{section}" for section in _sections())


def _sections() -> Iterator[str]:
    for module, names in by_module().items():
        yield f"## {module}\n"
        found = import_module(module)
        for name in names:
            yield _entry(name, getattr(found, name))


def by_module() -> dict[str, list[str]]:
    """The public names of each module; one that several have, of the first only."""
    seen: set[int] = set()
    found: dict[str, list[str]] = {}
    for short in MODULES:
        name = f"dragoman.{short}".rstrip(".")
        module = import_module(name)
        own = [each for each in module.__all__ if not each.startswith("_")]
        found[name] = [each for each in own if id(getattr(module, each)) not in seen]
        seen |= {id(getattr(module, each)) for each in own}
    return found


def _entry(name: str, value: Any) -> str:
    lines = [f"### {name}\n"]
    if inspect.isclass(value):
        signature = "" if _is_not_made(value) else _signature(value).removesuffix(" -> None")
        bases = [base.__name__ for base in value.__bases__ if base.__module__ != "builtins"]
        lines.append(f"```text\nclass {name}{signature}\n```\n")
        lines.append(f"{paragraph(value)}\n")
        if issubclass(value, BaseException):
            lines.append(f"Is a {' and a '.join(_all_bases(value, bases))}.\n")
        lines += _members(value)
    elif inspect.isroutine(value):
        lines += [f"```text\n{name}{_signature(value)}\n```\n", f"{paragraph(value)}\n"]
    elif not all(inspect.isclass(kind) for kind in getattr(value, "__args__", ())):
        lines.append(f"```text\n{name} = {_MODULES.sub('', str(value))}\n```\n")
    else:  # a union of classes, such as Event
        kinds = ", ".join(f"`{kind.__name__}`" for kind in getattr(value, "__args__", ()))
        lines.append(f"One of {kinds}.\n")
    return "\n".join(lines)


def _is_not_made(kind: type) -> bool:
    """Whether the reader never calls it: enums, errors (raised by us) and protocols."""
    return issubclass(kind, Enum | BaseException) or bool(getattr(kind, "_is_protocol", False))


def _all_bases(value: type, bases: list[str]) -> list[str]:
    return bases or [base.__name__ for base in value.__bases__]


def _members(kind: type) -> list[str]:
    """One line for each method and property; members of an enum by value."""
    if issubclass(kind, Enum):
        values = ", ".join(f"`{member.name}`" for member in kind)
        return [f"Members: {values}.\n", *_listed(kind)]
    return _listed(kind)


def _listed(kind: type) -> list[str]:
    lines = [f"- `{name}`: {' '.join(text.split())}" for name, text in fields(kind)]
    lines += [f"- `{name}`: {' '.join(text.split())}" for name, text in _flags(kind)]
    lines += [
        f"- `{name}{signature}`: {paragraph(member)}" for name, signature, member in members(kind)
    ]
    return ["\n".join(lines) + "\n"] if lines else []


def fields(kind: type) -> Iterator[tuple[str, str]]:
    """The fields of a class that have a text below them, which Python itself does not keep."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)  # noqa: S101 - a class's source is one
    for field, below in pairwise(tree.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                yield name, text
            case _:
                pass


def _flags(kind: type) -> Iterator[tuple[str, str]]:
    """The flags in the groups of a target, each named with its group."""
    for parameter in inspect.signature(kind).parameters.values() if kind is dragoman.Target else ():
        group = parameter.default
        for name, text in fields(type(group)) if isinstance(group, Flags) else ():
            rules = group.demands[name].rules if name in group.demands else ()
            yield f"{parameter.name}.{name}", f"{text} ({', '.join(rules)})" if rules else text


def members(kind: type) -> Iterator[tuple[str, str, Any]]:
    """The public methods and properties that are a class's own or its base classes' of ours."""
    values: tuple[str, ...] = getattr(kind, "__struct_fields__", ())
    for name in sorted(dir(kind)):
        if name.startswith("_") or name in values:
            continue
        owner = next(base for base in kind.__mro__ if name in vars(base))
        if not owner.__module__.startswith("dragoman."):
            continue
        member = vars(owner)[name]
        if isinstance(member, classmethod | staticmethod):
            yield name, _signature(getattr(kind, name)), member.__func__
        elif inspect.isfunction(member):
            yield name, _signature(member), member
        elif hasattr(member, "__get__") and not inspect.ismemberdescriptor(member):
            yield name, "", getattr(member, "fget", None) or getattr(member, "func", member)


def paragraph(value: Any) -> str:
    """The first paragraph of a docstring, on one line."""
    text = inspect.cleandoc(getattr(value, "__doc__", None) or "")
    return " ".join(text.split("\n\n")[0].split())


def _signature(value: Callable[..., Any]) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(…)"
    parameters = [p for p in signature.parameters.values() if p.name not in {"self", "cls"}]
    if any(p.name in Settings.__annotations__ and p.default is UNSET for p in parameters):
        parameters = [p for p in parameters if p.name not in Settings.__annotations__]
        parameters.append(_SETTINGS)  # the same ones in many places
    plain = [p.replace(default=_default(p.default)) for p in parameters]
    text = str(signature.replace(parameters=plain)).replace("'", "")
    return _MODULES.sub("", _ADDRESS.sub(r"\1", text))


class _Shown:
    """A default as the reader should see it."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _default(value: Any) -> Any:
    if value is inspect.Parameter.empty:
        return value
    if isinstance(value, Enum):
        return _Shown(f"{type(value).__name__}.{value.name}")
    if isinstance(value, str):
        return _Shown(f'"{value}"')
    return _Shown("…" if repr(value) == "<factory>" else repr(value))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.name}: {sum(map(len, by_module().values()))} names\n")
