"""A new configuration: what stays as it is, what is let go, and when."""

from __future__ import annotations

import asyncio

from dragoman.gateway.config.settings import GatewayConfig, Place
from dragoman.gateway.state import Gateway


def config(*urls: str) -> GatewayConfig:
    """A configuration that serves models in this process."""
    return GatewayConfig(places={url: Place(name=url, model_url=url) for url in urls})


def test_places_that_stay_are_not_opened_again() -> None:
    """A place that is the same in both files keeps its model and its connections."""

    async def reload() -> None:
        gateway = Gateway(config("echo:", "scripted:a"))
        before = {name: gateway.upstream(each) for name, each in gateway.config.places.items()}
        gateway.apply(config("echo:", "scripted:b"))
        after = {name: gateway.upstream(each) for name, each in gateway.config.places.items()}
        assert after["echo:"] is before["echo:"]
        assert after["scripted:b"] is not before["scripted:a"]
        await gateway.close()

    asyncio.run(reload())


def test_places_that_go_are_closed_when_nobody_uses_them() -> None:
    """A model that is no longer served is closed after the requests in progress."""

    async def reload() -> list[str]:
        closed: list[str] = []
        gateway = Gateway(config("echo:"))
        old = gateway.upstream(gateway.config.places["echo:"])

        async def close() -> None:
            closed.append("echo:")

        old.close = close  # type: ignore[method-assign]
        request = object()
        gateway.in_flight.add(request)  # type: ignore[arg-type]
        gateway.apply(config("scripted:a"))
        await asyncio.sleep(0)
        assert closed == []
        gateway.in_flight.clear()
        while gateway._closing:  # noqa: ASYNC110 - no event tells it
            await asyncio.sleep(0.01)
        await gateway.close()
        return closed

    assert asyncio.run(reload()) == ["echo:"]


def test_closing_closes_what_was_about_to_be() -> None:
    """Where the server ends meanwhile, places of the old configuration are closed, too."""

    async def reload() -> list[str]:
        closed: list[str] = []
        gateway = Gateway(config("echo:"))
        old = gateway.upstream(gateway.config.places["echo:"])

        async def close() -> None:
            closed.append("echo:")

        old.close = close  # type: ignore[method-assign]
        gateway.in_flight.add(object())  # type: ignore[arg-type]
        gateway.apply(config("scripted:a"))
        await gateway.close()
        return closed

    assert asyncio.run(reload()) == ["echo:"]
