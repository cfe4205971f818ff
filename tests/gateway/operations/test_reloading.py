"""A new configuration: what is kept, what is closed, and when."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from dragoman.gateway.config.settings import GatewayConfig, LogForm, Place
from dragoman.gateway.launching import set_up_log
from dragoman.gateway.serving import Worker
from dragoman.gateway.state import Gateway


def config(*urls: str) -> GatewayConfig:
    """A configuration with in-process models."""
    return GatewayConfig(places={url: Place(name=url, model_url=url) for url in urls})


def test_unchanged_providers_are_not_reopened() -> None:
    """A provider that is the same in both files keeps its model and its connections."""

    async def reload() -> None:
        gateway = Gateway(config("echo:", "scripted:a"))
        before = {name: gateway.upstream(each) for name, each in gateway.config.places.items()}
        gateway.apply(config("echo:", "scripted:b"))
        after = {name: gateway.upstream(each) for name, each in gateway.config.places.items()}
        assert after["echo:"] is before["echo:"]
        assert after["scripted:b"] is not before["scripted:a"]
        await gateway.close()

    asyncio.run(reload())


def test_removed_providers_are_closed_when_unused() -> None:
    """After the requests in progress."""

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


def test_closing_closes_removed_providers_too() -> None:
    """If the server ends meanwhile."""

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


def test_restored_values_need_no_restart(caplog: pytest.LogCaptureFixture) -> None:
    """The warning compares with the running server, not with the last file."""

    def at(port: int) -> GatewayConfig:
        made = config("echo:")
        return replace(made, server=replace(made.server, port=port))

    async def reload() -> None:
        worker = Worker(at(1))
        for port in (2, 1):
            caplog.clear()
            await worker.adopt(at(port))
            assert ("`port` takes effect after a restart" in caplog.text) is (port == 2)
        await worker.gateway.close()

    with caplog.at_level("INFO", "dragoman.gateway"):
        asyncio.run(reload())


@pytest.mark.parametrize("form", ["json", "text"])
def test_messages_have_a_time(form: LogForm, capsys: pytest.CaptureFixture[str]) -> None:
    """Messages on standard error begin with it, in the form of the request log."""
    logger = logging.getLogger("dragoman")
    kept = logger.handlers[:], logger.level, logger.propagate
    logger.handlers.clear()
    try:
        set_up_log(form)
        logger.warning("something happened")
    finally:
        logger.handlers[:], logger.propagate = kept[0], kept[2]
        logger.setLevel(kept[1])
    line = capsys.readouterr().err
    when = json.loads(line)["time"] if form == "json" else line.split(" ")[0]
    assert datetime.fromisoformat(when).utcoffset() == timedelta(0)
    assert "something happened" in line
