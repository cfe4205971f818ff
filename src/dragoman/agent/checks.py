"""What an agent is told, checked where it is told."""

from __future__ import annotations

from typing import Any

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


def expect_price(setup: Setup) -> None:
    """Raise where the cost is limited and nobody will know it; before anything is spent."""
    if setup.limits.cost is not None and not setup.prices.can_tell(setup.model.name):
        raise unknown_cost()
