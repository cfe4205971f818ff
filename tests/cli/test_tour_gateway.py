"""The commands that the tour prints while its gateway runs: each works when it is pasted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from shutil import which

import pytest

from dragoman.cli import tour_gateway
from dragoman.gateway.config.settings import GatewayConfig, Place
from tests.gateway.running import running

_NOWHERE = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
"""As in another terminal, in which no environment is active."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A gateway that echoes."""
    with running(GatewayConfig(places={"echo:": Place(name="echo:", model_url="echo:")})) as made:
        yield made.url


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(0, id="curl"),
        pytest.param(1, id="openai", marks=pytest.mark.slow),  # seconds: it imports the SDK
        pytest.param(2, id="anthropic", marks=pytest.mark.slow),
    ],
)
def test_printed_command_works_when_pasted(url: str, number: int) -> None:
    """A shell runs it as it is, and prints what the model said."""
    for name in ("openai", "anthropic"):
        pytest.importorskip(name)
    if number == 0 and which("curl", path=_NOWHERE["PATH"]) is None:
        pytest.skip("there is no curl")
    command = tour_gateway.commands(url, "echo:")[number]
    done = subprocess.run(  # noqa: S602 - as a user would
        command, shell=True, env=_NOWHERE, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Hello" in done.stdout


def test_missing_packages_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without an SDK, the command that installs it comes first."""
    monkeypatch.setattr(tour_gateway, "find_spec", lambda name: None if name == "openai" else name)
    tour_gateway._say("dragoman is listening on http://127.0.0.1:1", "echo:")
    told = capsys.readouterr().out
    assert f"{sys.executable} -m pip install openai  # for the last two" in told
    assert told.index("pip install") < told.index("from openai")
