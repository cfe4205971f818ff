"""A uvicorn that the gateway can't use is noticed at start."""

from __future__ import annotations

import re
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from dragoman.errors import ConfigError
from dragoman.gateway.config.settings import GatewayConfig
from dragoman.gateway.protocol import GatewayProtocol
from dragoman.gateway.serving import Worker
from dragoman.gateway.uvicorn_check import expect_usable


def test_the_installed_one_is_usable() -> None:
    """A request is answered, without an event loop."""
    expect_usable()


class _Renamed(ServerState):
    """What uvicorn's server shares with its connections, after a release that renamed a part."""

    def __init__(self) -> None:
        super().__init__()
        del self.connections


def _silent(_self: Any, _cycle: Any, _app: Any) -> None:
    """What starts a request, and doesn't."""


def _no_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(uvicorn.Server, "capture_signals")


def _no_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uvicorn.server.ServerState", _Renamed)


def _nothing_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GatewayProtocol, "start", _silent)


def _other_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn.Config, "load", lambda _self, _more: None)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_no_signals, "AttributeError: its Server has no capture_signals"),
        (_no_connections, "connections"),
        (_nothing_started, "RuntimeError: a request was not answered"),
        (_other_arguments, "TypeError"),
    ],
)
def test_one_that_does_not_answer_is_refused(
    change: Any, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it lacks what is used, or swallows requests, a worker doesn't come to listen."""
    change(monkeypatch)
    said = f"the installed uvicorn {re.escape(uvicorn.__version__)} doesn't work .*{reason}"
    with pytest.raises(ConfigError, match=f"{said}.*pip install --upgrade 'dragoman"):
        Worker(GatewayConfig())
