"""Describes a function as a tool: its name, docstring and parameters."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import UNSET

from dragoman.errors import InvalidInputError
from dragoman.model.functions.docstrings import Docstring, parse
from dragoman.model.functions.fields import Field, Layout, hints_of, json_default
from dragoman.model.functions.injection import is_injected
from dragoman.model.functions.records import Record
from dragoman.model.functions.schema import schema_of_shape, shape_of_layout
from dragoman.model.functions.shapes import MisfitError

_COLLECTORS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


class Signature(NamedTuple):
    """The signature of a function, as needed for a tool."""

    name: str
    description: str
    shape: Record
    positional: tuple[str, ...]
    """Parameters that can't be passed by keyword."""
    injected: tuple[str, ...] = ()
    """Parameters that the caller fills in, hidden from the model."""
    context: Any = None
    """The type of the first injected parameter."""

    def schema(self, *, closed: bool) -> dict[str, Any]:
        """The JSON Schema of the parameters."""
        return schema_of_shape(self.shape, closed=closed)

    def read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Converts the arguments to the types of the signature; errors don't quote them."""
        try:
            read: dict[str, Any] = self.shape.read(arguments)
        except MisfitError as misfit:
            problem = f"${misfit.path}: expected {misfit.expected}"
        else:
            return read
        msg = f"the arguments don't match `{self.name}`: {problem}"
        raise InvalidInputError(msg)


def signature_of(function: Any) -> Signature:
    """The signature of a function, method, partial or callable object.

    Excludes `self`, `cls` and the parameters that a partial has already bound.
    """
    if isinstance(function, type):
        msg = f"{function.__name__} is a class; use ToolDefinition.from_type"
        raise InvalidInputError(msg)
    if not callable(function):
        msg = f"a tool must be a function, not {type(function).__name__}"
        raise InvalidInputError(msg)
    name, said = _name(function), _documentation(function)
    parameters = _parameters(function, name)
    hints = _hints(function, parameters, name)
    injected = tuple(each.name for each in parameters if is_injected(hints.get(each.name)))
    fields = [_field(each, hints, said) for each in parameters if each.name not in injected]
    positional = tuple(each.name for each in parameters if each.kind is each.POSITIONAL_ONLY)
    shape = shape_of_layout(Layout(tuple(fields)), dict, name)
    context = hints[injected[0]] if injected else None
    return Signature(name, said.description, shape, positional, injected, context)


def context_of(function: Any) -> Any:
    """The type of a function's injected parameter, or `None` if there is none."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
        hints = _hints(function, parameters, "")
    except (TypeError, ValueError, InvalidInputError):
        return None
    return next((hint for hint in hints.values() if is_injected(hint)), None)


def _plain(function: Any) -> Any:
    """The underlying function, without partials, decorators or a callable object around it."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    function = getattr(function, "__func__", function)
    if not hasattr(function, "__code__"):
        function = inspect.unwrap(type(function).__call__)
    return function


def _name(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _documentation(function: Any) -> Docstring:
    while isinstance(function, functools.partial):
        function = function.func
    if hasattr(function, "__name__"):
        return parse(inspect.getdoc(function))
    said = parse(type(function).__call__.__doc__)  # a callable object: also use its class docstring
    own = parse(vars(type(function)).get("__doc__"))
    return Docstring(said.description or own.description, {**own.parameters, **said.parameters})


def _parameters(function: Any, name: str) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = None
    if parameters is None:
        msg = f"the function `{name}` has no signature that Python can inspect"
        raise InvalidInputError(msg)
    first = parameters[0] if parameters else None
    if first and first.name in {"self", "cls"} and first.annotation is first.empty:
        parameters = parameters[1:]
    settled = function.keywords if isinstance(function, functools.partial) else {}
    for each in parameters:
        if each.kind in _COLLECTORS:
            msg = (
                f"the function `{name}` takes {_COLLECTORS[each.kind]}{each.name}; a tool needs"
                " named parameters, so list them"
            )
            raise InvalidInputError(msg)
    return [each for each in parameters if each.name not in settled]


def _hints(function: Any, parameters: list[inspect.Parameter], name: str) -> dict[str, Any]:
    """The parameters' types; other annotations may refer to names missing at run time."""
    plain = _plain(function)
    given = {each.name: each.annotation for each in parameters}
    present = {key: hint for key, hint in given.items() if hint is not inspect.Parameter.empty}
    names, known = getattr(plain, "__globals__", {}), _enclosed(plain)
    return hints_of(lambda: present, names, known, f"the function `{name}`")


def _enclosed(function: Any) -> dict[str, Any]:
    """The names that a function captures from enclosing functions."""
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    cells = getattr(function, "__closure__", None) or ()
    found: dict[str, Any] = {}
    for name, cell in zip(names, cells, strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue  # not assigned yet
    return found


def _field(parameter: inspect.Parameter, hints: Mapping[str, Any], said: Docstring) -> Field:
    is_required = parameter.default is parameter.empty
    default = UNSET if is_required else json_default(parameter.default)
    kind, description = hints.get(parameter.name, Any), said.parameters.get(parameter.name)
    return Field(parameter.name, parameter.name, kind, is_required, default, description)
