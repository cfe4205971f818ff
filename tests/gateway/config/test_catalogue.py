"""The available models, as the providers list them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping

from dragoman.errors import ConnectError
from dragoman.gateway.config.catalogue import Catalogue
from dragoman.gateway.config.reading import parse_config
from dragoman.gateway.config.settings import GatewayConfig
from dragoman.transport.protocol import HttpRequest, Reply, Timeouts

LAB = '[providers.{0}]\nkind = "openai-compatible"\nbase_url = "http://{0}/v1"\n'


class ListReply:
    """The reply of a provider with these models, or with a status or a text instead."""

    def __init__(self, models: list[str] | int | str) -> None:
        self.status = models if isinstance(models, int) else 200
        self.headers: Mapping[str, str] = {}
        self._body = "{}"
        if isinstance(models, str):
            self._body = models
        elif isinstance(models, list):
            data = [{"id": each} for each in models]
            self._body = json.dumps({"object": "list", "data": data})

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body."""
        yield self._body.encode()

    async def close(self) -> None:
        """Nothing is open."""


class Lists:
    """A network where each host has models; hosts without models don't answer, or not in time."""

    def __init__(self, **models: list[str] | int | str | None) -> None:
        self.models = models
        self.asked: list[str] = []

    async def open(self, request: HttpRequest, timeouts: Timeouts) -> Reply:
        """The list of a host."""
        assert timeouts.connect
        host = request.url.split("/")[2].partition(":")[0]
        self.asked.append(host)
        await asyncio.sleep(0)
        if host not in self.models:
            msg = "refused"
            raise ConnectError(msg)
        models = self.models[host]
        if models is None:
            await asyncio.Event().wait()
        return ListReply(models or [])

    async def close(self) -> None:
        """Nothing is open."""


class Clock:
    """A clock that only moves when told to."""

    now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def config(text: str, *labs: str) -> GatewayConfig:
    """A configuration with providers of these names."""
    return parse_config("".join(map(LAB.format, labs)) + text, {})


def names(config: GatewayConfig, network: Lists, seconds: float = 5.0) -> list[str]:
    """The names of all models."""
    catalogue = Catalogue(config, environ={}, transport=network, seconds=seconds)
    return [info.id for info in asyncio.run(catalogue.models())]


def test_without_routes_names_are_plain_and_prefixed() -> None:
    """For each provider that answers; others are left out."""
    found = names(config("", "a", "b", "gone"), Lists(a=["x", "y"], b=["y"]))
    assert [each for each in found if "local:" not in each] == [
        "a:x", "a:y", "b:y", "echo:", "x", "y",
    ]  # fmt: skip


def test_with_routes_their_names_and_matches_of_patterns() -> None:
    """Aliases first, then exact names, then the models of providers that patterns lead to."""
    text = """
[[routes]]
model = "gpt-*"
to = ["a", "b:x"]
[[routes]]
model = "exact"
to = "b"
[aliases]
fast = "gpt-1"
"""
    network = Lists(a=["gpt-1", "other", "exact"], b=["gpt-2"])
    assert names(config(text, "a", "b"), network) == ["fast", "exact", "gpt-1"]
    assert network.asked == ["a"]


def test_a_slow_provider_is_left_out() -> None:
    """The others are still listed."""
    text = "[[routes]]\nmodel='*'\nto=['slow', 'a']"
    assert names(config(text, "a", "slow"), Lists(a=["x"], slow=None), seconds=0.05) == ["x"]


async def test_lists_are_cached_for_minutes() -> None:
    """Concurrent requests ask once; later, the providers are asked again."""
    clock, network = Clock(), Lists(a=["x"])
    settings = config("[[routes]]\nmodel='*'\nto='a'", "a")
    catalogue = Catalogue(settings, environ={}, transport=network, clock=clock)
    await asyncio.gather(*(catalogue.models() for _ in range(5)))
    clock.now = 299.0
    await catalogue.models()
    assert network.asked == ["a"]
    clock.now = 301.0
    await catalogue.models()
    assert network.asked == ["a", "a"]


async def test_an_unknown_name_refreshes_the_list_but_not_each_time() -> None:
    """Guessing names causes at most one request every ten seconds."""
    clock, network = Clock(), Lists(a=["x"])
    settings = config("", "a")
    catalogue = Catalogue(settings, environ={}, transport=network, clock=clock)
    for number in range(10):
        assert await catalogue.holder(f"no-{number}") is None
    assert network.asked.count("a") == 1
    network.models["a"] = ["x", "pulled"]
    clock.now = 11.0
    held = await catalogue.holder("pulled")
    assert held is not None
    assert (held.place.name, held.model) == ("a", "pulled")


def test_a_pattern_with_a_named_model_lists_that() -> None:
    """Clients would otherwise have no list; a name that doesn't lead there is not in it."""
    for pattern, listed in (("*", ["small"]), ("claude-*", [])):
        text = f'[[routes]]\nmodel = "{pattern}"\nto = "a:small"\n'
        assert names(config(text, "a"), Lists(a=["x", "y"])) == listed


def test_only_a_provider_that_cannot_serve_requests_is_down() -> None:
    """A refused connection, no answer in time, a refused key, a 5xx; not a list that is missing."""
    network = Lists(silent=None, key=401, broken=502, none=404, often=429, other="[1]", page="<p>")
    labs = (*network.models, "refused")
    catalogue = Catalogue(config("", *labs), environ={}, transport=network, seconds=0.2)
    failures = asyncio.run(catalogue.failures())
    assert {name: failures[name] for name in labs if name in failures} == {
        "silent": "TimeoutError",
        "key": "AuthenticationError",
        "broken": "ServerError",
        "refused": "ConnectError",
    }
