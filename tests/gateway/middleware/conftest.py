"""A gateway in front of a provider of every dialect and an in-process model."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.gateway.config.settings import GatewayConfig, Hop, Place, RouteSettings
from dragoman.gateway.middleware import Middleware
from dragoman.gateway.middleware.loading import hooks_of
from dragoman.gateway.records import RequestRecord
from tests.gateway.answers import KINDS, Provider, said
from tests.gateway.client_requests import Answer, ask, body_for, path_for, text_in
from tests.gateway.running import Serving, place, running, upstream


class Stage:
    """The gateway, its providers by dialect, and the records of its requests."""

    def __init__(self, serving: Serving, providers: dict[str, Provider]) -> None:
        self.serving = serving
        self.gateway = serving.gateway
        self.providers = providers
        self._records: list[RequestRecord] = []
        self.asked = 0
        """Requests that were sent."""
        self.gateway.observers.append(self._records.append)

    @property
    def records(self) -> list[RequestRecord]:
        """The records of all requests: they are written after the client has its answer."""
        for _ in range(2000):
            if len(self._records) >= self.asked:
                break
            threading.Event().wait(0.005)
        return self._records

    def use(self, *values: Any, timeout: float = 20.0) -> None:
        """Set the middleware."""
        found = [hooks_of(f"test{number}", value) for number, value in enumerate(values)]
        self.gateway.middleware = Middleware(found, timeout, "test") if found else None

    def reset(self) -> None:
        """Restore the initial state."""
        self.use()
        self.records.clear()
        self.asked = 0
        for name, provider in self.providers.items():
            provider.answers = [said()]
            provider.asked.clear()
            provider.__class__ = Provider
            provider.name = name

    def ask(
        self, front: str, text: str = "Where?", *, stream: bool = False, model: str = "anthropic",
        **headers: str,
    ) -> Answer:  # fmt: skip
        """Call a provider, by the name of its dialect."""
        self.asked += 1
        path = path_for(front, stream=stream, model=model)
        return ask(self.serving.url, path, body_for(front, text, stream=stream, model=model),
                   **headers)  # fmt: skip

    def text(self, front: str, *given: Any, stream: bool = False, **options: Any) -> str:
        """The text of a complete answer."""
        answer = self.ask(front, *given, stream=stream, **options)
        assert answer.status == 200, answer.body
        return text_in(front, answer, stream=stream)


@pytest.fixture(scope="package")
def whole_stage() -> Iterator[Stage]:
    """One for all tests: starting one takes longer than most of them."""
    providers = {name: Provider(name) for name in KINDS}
    with ExitStack() as stack:
        places = {
            name: place(name, KINDS[name], stack.enter_context(upstream(each)), dialect=name)
            for name, each in providers.items()
        }
        places["here"] = Place(name="here", model_url="echo:")
        routes = [RouteSettings(model=name, to=(Hop(place=at),)) for name, at in places.items()]
        both = (Hop(place=places["anthropic"]), Hop(place=places["openai-chat"]))
        routes.append(RouteSettings(model="both", to=both))
        cached = [
            replace(route, model=f"cached-{route.model}", cache=600.0,
                    to=tuple(replace(hop, model=route.model) for hop in route.to))
            for route in routes
        ]  # fmt: skip
        config = GatewayConfig(places=places, routes=(*routes, *cached))
        yield Stage(stack.enter_context(running(config)), providers)


@pytest.fixture
def stage(whole_stage: Stage) -> Iterator[Stage]:
    """The same, in its initial state."""
    whole_stage.reset()
    yield whole_stage
    whole_stage.reset()
