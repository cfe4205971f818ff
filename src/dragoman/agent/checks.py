"""What an agent is told, checked where it is told."""

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
    """A model that whoever opened it closes."""
    if isinstance(model, (str, Provider)):
        msg = "override takes an open model: TestModel(), ScriptedModel([…]) or EchoModel()"
        raise InvalidInputError(msg)
    checked: Model = open_model(model)
    return checked


def check_retries(retries: object) -> None:
    """Raise where it is no number of attempts."""
    if type(retries) is not int or retries < 0:
        msg = "output_retries must be a whole number from 0 on"
        raise InvalidInputError(msg)


def check_orchestrator(orchestrator: object) -> None:
    """Raise where it can drive no run."""
    if isinstance(orchestrator, type):
        msg = "orchestrator must be an object, not a class: write TypedOrchestrator(), for one"
        raise InvalidInputError(msg)
    expect(orchestrator, (Orchestrator, type(None)), "orchestrator")


def expect_no_deps_wanted(setup: Setup) -> None:
    """Raise where something can't work without `deps`: a call gives none. Nothing is asked yet."""
    wanting = wanting_deps(setup)
    if wanting is None:
        return
    what, kind = wanting
    name = getattr(kind, "__name__", "that type")
    msg = (
        f"{what} works with `deps` ({name}), and this call gives none: pass deps=…;"
        f" what can do without them takes a RunContext[{name} | None]"
    )
    raise InvalidInputError(msg)


def wanting_deps(setup: Setup) -> tuple[str, Any] | None:
    """Which part of an agent can't work without `deps`, and of what type they are."""
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
    """Raise where the cost is limited and nobody will know it; before anything is spent."""
    if setup.limits.cost is not None and not setup.prices.can_tell(setup.model.name):
        raise unknown_cost()
