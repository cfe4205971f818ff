"""Evaluates the type arguments of agents and contexts at run time.

`Agent[Database, Place](model)` returns a `Place`, and a tool with a `RunContext[Database]` needs
one: type checkers know both, and so does a run.
"""

from __future__ import annotations

import typing
from collections.abc import Callable
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin
from weakref import WeakKeyDictionary

from msgspec import UNSET

from dragoman.agent.context import RunContext
from dragoman.errors import InvalidInputError
from dragoman.model.functions.signatures import context_of

_ANYTHING = (Any, object, None, NoneType)
_SAY_NOTHING = (UNSET, Any, object, str)
_UNIONS = (Union, UnionType)

# --- the output of an agent


def declared_output(kind: Any, agent: type) -> Any:
    """The output type from the type arguments of a class, `Agent[Deps, Out]`; None: text."""
    found = _second_argument(kind, agent)
    if isinstance(found, (str, typing.ForwardRef)):
        msg = (
            "the output type of an Agent[…] is written as a string, which can't be resolved at run"
            " time: write the type itself, or pass it as output=…"
        )
        raise InvalidInputError(msg)
    says_nothing = isinstance(found, typing.TypeVar) or any(found is each for each in _SAY_NOTHING)
    return None if says_nothing else found


def _second_argument(kind: Any, agent: type) -> Any:
    origin, arguments = get_origin(kind) or kind, get_args(kind)
    if origin is agent:
        return arguments[1] if arguments else UNSET
    for base in vars(origin).get("__orig_bases__", origin.__bases__):
        of = get_origin(base) or base
        if isinstance(of, type) and issubclass(of, agent):
            found = _second_argument(base, agent)
            is_open = isinstance(found, typing.TypeVar) and bool(arguments)
            return arguments[origin.__parameters__.index(found)] if is_open else found
    return UNSET


# --- the dependencies of a function


def wanted_deps(context: Any) -> Any:
    """The `X` of a `RunContext[X]` if it is required; None if it is optional."""
    origin, arguments = get_origin(context), get_args(context)
    if origin is RunContext:
        return None if _may_be_none(arguments[0]) else arguments[0]
    if origin is Annotated:
        return wanted_deps(arguments[0])
    found = [wanted_deps(each) for each in arguments] if origin in _UNIONS else []
    return next((each for each in found if each is not None), None)


def _may_be_none(kind: Any) -> bool:
    if any(kind is each for each in _ANYTHING) or isinstance(kind, typing.TypeVar):
        return True
    if get_origin(kind) is Annotated:
        return _may_be_none(get_args(kind)[0])
    return get_origin(kind) in _UNIONS and any(map(_may_be_none, get_args(kind)))


_known: WeakKeyDictionary[Callable[..., Any], Any] = WeakKeyDictionary()


def deps_of_function(function: Callable[..., Any]) -> Any:
    """The `deps` type that a hook or other function needs; None if it needs none."""
    try:
        if function not in _known:
            _known[function] = wanted_deps(context_of(function))
        return _known[function]
    except TypeError:  # an unhashable or unreferenceable object
        return wanted_deps(context_of(function))
