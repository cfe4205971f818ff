"""A gateway with a store, in front of one scripted server that speaks three dialects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from dragoman.gateway.config.settings import GatewayConfig, Hop, RouteSettings, ServerSettings
from tests.gateway.responses.upstreams import Model, model
from tests.gateway.running import Serving, place, running

MODELS = ("chat", "claude", "gpt")
"""Models behind which Chat, Anthropic and Responses are spoken."""
COVER = [pytest.param(name, marks=[pytest.mark.slow] * (name != "claude")) for name in MODELS]
"""The same; only one of them in `make test`."""


def config_for(url: str, **server: Any) -> GatewayConfig:
    """A gateway's configuration: a model for each dialect, at one address."""
    places = [
        place("chat", "openai-compatible", f"{url}/v1"),
        place("claude", "anthropic", f"{url}/v1"),
        place("gpt", "openai", f"{url}/v1", dialect="openai-responses"),
    ]
    routes = [RouteSettings(model=f"{each.name}*", to=(Hop(place=each),)) for each in places]
    routes.append(RouteSettings(model="unstored", to=(Hop(place=places[0]),), store=False))
    routes.append(RouteSettings(model="noted", to=(Hop(place=places[0]),), session="notes"))
    settings: dict[str, Any] = {"drain_timeout": 1.0, **server}
    return GatewayConfig(
        server=ServerSettings(**settings),
        places={each.name: each for each in places},
        routes=tuple(routes),
    )


@pytest.fixture(scope="module")
def behind() -> Iterator[Model]:
    """The server behind, once for a module: starting one takes longer than most tests."""
    with pytest.MonkeyPatch.context() as patch, model() as made:
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            patch.setenv(name, "sk-upstream")
        yield made


@pytest.fixture
def scripted(behind: Model) -> Iterator[Model]:
    """The server behind, which has not been asked anything yet."""
    behind.reset()
    yield behind
    behind.gate.set()


@pytest.fixture(scope="module")
def gateway(behind: Model) -> Iterator[Serving]:
    """The gateway, with a store in memory."""
    with running(config_for(behind.url, history="memory:")) as found:
        yield found


@pytest.fixture
def serving(scripted: Model, gateway: Serving) -> Serving:
    """The gateway, in front of a fresh server."""
    del scripted
    return gateway


@pytest.fixture
def client(serving: Serving) -> Iterator[Any]:
    """OpenAI's own client."""
    with client_of(serving) as made:
        yield made


@pytest.fixture(scope="module")
def http(gateway: Serving) -> Iterator[httpx.Client]:
    """Plain HTTP, for what OpenAI's client would never send."""
    with httpx.Client(base_url=gateway.url, timeout=20) as made:
        yield made


def client_of(serving: Serving, key: str = "sk-any") -> Any:
    """OpenAI's own client, with a key."""
    return openai.OpenAI(base_url=f"{serving.url}/v1", api_key=key, max_retries=0, timeout=20)
