"""Griffe extensions for the reference: signatures that can be read, examples as code.

Griffe reads source without running it, so it knows the constructors of dataclasses but not those of
Structs. `StructSignatures` takes names and kinds of the parameters from the class itself, and types
and defaults, as they are written, from the source, so that the reference can link them. It does the
same for TypedDicts. `ShortSignatures` shows one signature for functions with many overloads.
`ExampleFences` puts `>>>` examples in docstrings into fenced blocks.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any, is_typeddict

import griffe
import msgspec

from dragoman.errors import ConfigError

_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: griffe.ParameterKind.positional_only,
    inspect.Parameter.POSITIONAL_OR_KEYWORD: griffe.ParameterKind.positional_or_keyword,
    inspect.Parameter.VAR_POSITIONAL: griffe.ParameterKind.var_positional,
    inspect.Parameter.KEYWORD_ONLY: griffe.ParameterKind.keyword_only,
    inspect.Parameter.VAR_KEYWORD: griffe.ParameterKind.var_keyword,
}


class StructSignatures(griffe.Extension):
    """Adds an `__init__` with the fields as parameters to Structs and TypedDicts."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """All classes of the package, once it is loaded."""
        self._visit(pkg)

    def _visit(self, scope: griffe.Module | griffe.Class) -> None:
        for member in list(scope.members.values()):
            if member.is_alias:
                continue
            if isinstance(member, griffe.Class):
                _add_signature(member)
            if isinstance(member, griffe.Module | griffe.Class):
                self._visit(member)


class ShortSignatures(griffe.Extension):
    """One signature where overloads only tell type checkers how `output` decides the result."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """`@with_options(X)` says what `**options` are: `Unpack[X]`."""
        for decorator in func.decorators:
            if found := re.fullmatch(r"with_options\((\w+)\)", str(decorator.value)):
                options = list(func.parameters)[-1]
                if options.kind is griffe.ParameterKind.var_keyword:
                    name = griffe.ExprName(found[1], parent=func.parent)
                    options.annotation = griffe.ExprSubscript(griffe.ExprName("Unpack"), name)

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Overloads are known once the module is complete."""
        for function in _functions(pkg):
            if function.overloads is not None and len(function.overloads) > _READABLE:
                function.overloads = None


_READABLE = 2  # overloads


def _functions(scope: griffe.Module | griffe.Class) -> Iterator[griffe.Function]:
    for member in scope.members.values():
        if isinstance(member, griffe.Function):
            yield member
        elif isinstance(member, griffe.Module | griffe.Class):
            yield from _functions(member)


class ExampleFences(griffe.Extension):
    """Fences the examples in docstrings, which Markdown would take for quotations."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Every object with a docstring."""
        if obj.docstring is not None and ">>>" in obj.docstring.value:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """A docstring whose `>>>` examples, up to the next empty line, are fenced blocks."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(_fenced(each) if ">>> " in each else each for each in paragraphs)


def _fenced(paragraph: str) -> str:
    before, mark, example = paragraph.partition(">>> ")
    return f"{before.rstrip()}\n\n```pycon\n{mark}{example}\n```".lstrip("\n")


def _add_signature(described: griffe.Class) -> None:
    try:
        found = getattr(import_module(described.module.path), described.name)
    except (AttributeError, ImportError, ConfigError):  # nested, or its extra is not installed
        return
    if "__init__" in described.members or not isinstance(found, type):
        return
    fields = _fields(described)
    if is_typeddict(found):
        keys = [fields[name] for name in found.__annotations__ if name in fields]
        parameters = [_key(each, is_required=each.name in found.__required_keys__) for each in keys]
    elif issubclass(found, msgspec.Struct):
        try:
            signature = inspect.signature(found)
        except NameError:  # a private one, whose types are imported for type checkers only
            return
        parameters = [
            _parameter(each, fields.get(each.name)) for each in signature.parameters.values()
        ]
    else:
        return
    function = griffe.Function(
        "__init__", parameters=griffe.Parameters(griffe.Parameter("self"), *parameters)
    )
    described.set_member("__init__", function)


def _key(field: griffe.Attribute, *, is_required: bool) -> griffe.Parameter:
    return griffe.Parameter(
        field.name,
        annotation=field.annotation,
        kind=griffe.ParameterKind.keyword_only,
        default=None if is_required else "...",
    )


def _fields(described: griffe.Class) -> dict[str, griffe.Attribute]:
    """The annotated attributes of a class and its bases; those of the class itself win."""
    return {
        name: member
        for place in (*reversed(described.mro()), described)
        for name, member in place.members.items()
        if isinstance(member, griffe.Attribute) and member.annotation is not None
    }


def _parameter(parameter: inspect.Parameter, field: griffe.Attribute | None) -> griffe.Parameter:
    has_default = parameter.default is not parameter.empty
    default: Any = None
    if has_default:
        default = field.value if field is not None and field.value is not None else "..."
        if "field(" in str(default):
            default = "..."
    annotation = field.annotation if field is not None else None
    return griffe.Parameter(
        parameter.name, annotation=annotation, kind=_KINDS[parameter.kind], default=default
    )
