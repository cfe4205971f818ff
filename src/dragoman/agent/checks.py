"""Validates the arguments of an agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dragoman.agent.declared_types import deps_of_function
from dragoman.agent.limits import unknown_cost
from dragoman.agent.orchestrator import Orchestrator
from dragoman.agent.setup import Setup
from dragoman.errors import InvalidInputError
from dragoman.model.value import expect
from dragoman.providers.provider import Provider
from dragoman.transport.model import Model, open_model


def opened(model: Any) -> Model:
    """A model that is already open, and is closed by whoever opened it."""
    if isinstance(model, (str, Provider)):
        msg = "override needs a model object: TestModel(), ScriptedModel([…]) or EchoModel()"
        raise InvalidInputError(msg)
    checked: Model = open_model(model)
    return checked


def check_retries(retries: object) -> None:
    """Raise unless it is a valid number of retries."""
    if type(retries) is not int or retries < 0:
        msg = "output_retries must be a non-negative integer"
        raise InvalidInputError(msg)


def check_orchestrator(orchestrator: object) -> None:
    """Raise unless it is an orchestrator."""
    if isinstance(orchestrator, type):
        msg = "orchestrator must be an instance, not a class, such as TypedOrchestrator()"
        raise InvalidInputError(msg)
    expect(orchestrator, (Orchestrator, type(None)), "orchestrator")


def expect_no_deps_wanted(setup: Setup) -> None:
    """Raise if some part needs `deps` and the call has none, before any request."""
    wanting = wanting_deps(setup)
    if wanting is None:
        return
    what, kind = wanting
    name = getattr(kind, "__name__", "that type")
    msg = (
        f"{what} needs `deps` ({name}), and this call has none: pass deps=…, or declare"
        f" RunContext[{name} | None] if they are optional"
    )
    raise InvalidInputError(msg)


def wanting_deps(setup: Setup) -> tuple[str, Any] | None:
    """The part of an agent that needs `deps`, and their type; None if no part does."""
    if setup.tools.wanting is not None:
        name, kind = setup.tools.wanting
        return f"the tool `{name}`", kind
    for handoff in setup.tools.handoffs.values():
        found = wanting_deps(handoff.setup())
        if found is not None:
            return f"{found[0]} of `{handoff.name}`", found[1]
    for what, function in _functions(setup):
        kind = deps_of_function(function)
        if kind is not None:
            return what, kind
    return None


def _functions(setup: Setup) -> Iterator[tuple[str, Callable[..., Any]]]:
    if callable(setup.system):
        yield "the function given as system", setup.system
    if setup.dynamic_tools is not None:
        yield "the function given as dynamic_tools", setup.dynamic_tools
    if setup.approve is not None:
        yield "the function given as approve", setup.approve
    if setup.output is not None and setup.output.function is not None:
        yield "the function given as output", setup.output.function.function
    for name, hook in setup.hooks.given():
        yield f"the hook `{name}`", hook


def expect_price(setup: Setup) -> None:
    """Raise if there is a cost limit but no known price, before anything is spent."""
    if setup.limits.cost is not None and not setup.prices.has_price(setup.model.name):
        raise unknown_cost(setup.model.name)
