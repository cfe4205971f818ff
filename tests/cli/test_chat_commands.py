"""The commands of a chat: settings, instructions, sessions, tools and the clipboard."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from dragoman.cli.chat.commands import COMMANDS
from dragoman.cli.chat.copying import copied
from dragoman.cli.chat.flow import Flow
from dragoman.cli.chat.prose import Prose, settled
from dragoman.cli.chat.screens import PipeScreen
from dragoman.cli.exit_codes import Ending
from dragoman.cli.request_settings import setting_names
from tests.cli.loopback import script, serving, streamed
from tests.cli.test_chat import TOOLS, run, stored

pytestmark = pytest.mark.usefixtures("own_folder")


def sent(monkeypatch: pytest.MonkeyPatch, *arguments: str, stdin: str) -> list[dict[str, object]]:
    """The requests that a chat sends."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with serving(streamed("Yes.")) as vendor:
        done = run("openai:gpt-4.1", "--base-url", f"{vendor.url}/v1", "--dialect", "openai-chat",
                   *arguments, stdin=stdin)  # fmt: skip
    assert done.exit_code == 0, done.stderr
    return [came.json for came in vendor.came]


def test_settings_can_be_changed_during_a_chat(monkeypatch: pytest.MonkeyPatch) -> None:
    """/set applies from the next message on; `default` unsets one and keeps the others."""
    first, second, third = sent(
        monkeypatch, "-o", "seed=7", "--temperature", "1",
        stdin="One\n/set temperature 0.2\n/set top_p=0.5\nTwo\n/set temperature default\nThree\n",
    )  # fmt: skip
    assert (first["seed"], first["temperature"]) == (7, 1)
    assert (second["seed"], second["temperature"], second["top_p"]) == (7, 0.2, 0.5)
    assert ("temperature" in third, third["top_p"]) == (False, 0.5)


def test_an_unsupported_setting_is_reported() -> None:
    """The warning comes when it is set, at the start, and when the model is switched."""
    there = ("openai-compatible:m", "--base-url", "http://127.0.0.1:9/v1")
    done = run(*there, "-o", "top_k=5", stdin="/set seed 7\n")
    assert "sampling.top_k is not sent to " in done.stderr
    assert "sampling.seed" not in done.stderr
    done = run(*there, stdin="/set top_k 5\n")
    assert "sampling.top_k is not sent to openai-compatible:m: " in done.stderr


def test_instructions_can_be_changed_during_a_chat(monkeypatch: pytest.MonkeyPatch) -> None:
    """They can be removed as well."""
    requests = sent(
        monkeypatch, "-s", "Be brief.", stdin="One\n/system Be kind.\nTwo\n/system default\nThree\n"
    )
    first = [request["messages"][0]["content"] for request in requests]  # type: ignore[index]
    assert first == ["Be brief.", "Be kind.", "One"]


def test_settings_are_shown() -> None:
    """/set without arguments lists the settings, including those of the chat itself."""
    done = run(
        "echo:", "-o", "seed=7", stdin="/set\n/set seed\n/set top_p\n/set usage on\nHi\n/system\n"
    )
    assert "seed           7" in done.stderr
    assert "seed: 7" in done.stderr
    assert "top_p: provider default" in done.stderr
    assert "tokens: 1 in, 1 out" in done.stderr
    assert all(name in done.stderr for name in setting_names())


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("/set temprature 1", "did you mean temperature?"),
        ("/set temperature hot", "temperature: must be a number"),
        ("/set usage maybe", "usage: must be on or off"),
        ("/modle x", "there is no command /modle (did you mean /model?)"),
        ("/sessions nowhere", "there is no chat nowhere"),
        ("/copy", "there is no answer yet"),
        ("/copy everything", "/copy copies the last answer"),
        ("/thinking", "came without thinking"),
        ("/tools nowhere.py", "there is no such file"),
    ],
)
def test_invalid_commands_are_reported(line: str, problem: str) -> None:
    """In a pipe, an invalid command ends the chat, as every error does."""
    done = run("echo:", stdin=f"{line}\n")
    assert (done.exit_code, problem in done.stderr) == (2, True), done.stderr


def test_new_starts_a_chat_and_an_old_one_can_be_opened() -> None:
    """Sessions are opened by name or by number; each keeps its own messages."""
    done = run("echo:", "--session", "s",
               stdin="One\n/new t\nOther\n/sessions\n/sessions s\nTwo\n/new\nThird\n")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert [m.text for m in stored("s")] == ["One", "One", "Two", "Two"]
    assert [m.text for m in stored("t")] == ["Other", "Other"]
    assert "t *" in done.stderr
    again = run("echo:", "--session", "u", stdin="U\n/sessions 2\nFourth\n/new s\n")
    assert again.exit_code == 2
    assert "there is already a chat s" in again.stderr
    assert run("echo:", "--no-history", stdin="A\n/new\n/sessions\nB\n").stdout == "A\nB\n"


def test_tools_can_be_loaded_during_a_chat() -> None:
    """The new tools are available beside the built-in ones."""
    Path("mine.py").write_text(TOOLS)
    done = run("echo:", stdin='/tools mine.py\n/tool weather {"city": "Basel"}\n/tool now\n')
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("rain in Basel\n")
    assert "asks first" in done.stderr


def test_every_command_is_listed_and_documented() -> None:
    """The list and the documentation have the arguments of each command."""
    listed = run("echo:", stdin="/help\n").stderr
    page = (Path(__file__).parents[2] / "docs" / "reference" / "commands.md").read_text()
    for name, each in COMMANDS.items():
        assert each.usage in listed
        assert f"`/{name}" in page, name


# --- the clipboard


def test_an_answer_is_copied_by_a_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The desktop's clipboard program is used; a failure is reported."""
    program = tmp_path / "bin" / "wl-copy"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\ncat > copied\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    done = run("echo:", stdin="Hello **there**\n/copy\n")
    assert "copied the last answer, 15 characters (with wl-copy)" in done.stderr
    assert Path("copied").read_text() == "Hello **there**"
    program.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(Ending, match="no clipboard found"):
        copied("x", PipeScreen())


def test_code_is_copied_if_there_is_any() -> None:
    """Without a code block, an error is reported."""
    done = run(script("No code."), stdin="Code?\n/copy code\n")
    assert "there is no code block in the last answer" in done.stderr


# --- resizing


@given(
    words=st.lists(st.text("abcdefgh", min_size=1, max_size=12), min_size=1, max_size=150),
    widths=st.lists(st.integers(5, 120), min_size=1, max_size=8),
)
def test_resizing_loses_or_repeats_no_word(words: list[str], widths: list[int]) -> None:
    """Every word is printed once, in order, at any sequence of widths."""
    import io

    seen = io.StringIO()
    console = Console(file=seen, width=80, height=8, legacy_windows=False, no_color=True)
    flow = Flow(console, settled, Prose)
    for number, word in enumerate(words):
        console.width = widths[number * len(widths) // len(words)]
        flow.feed(f"{word} ")
        flow.tail()
    flow.close()
    assert "".join(seen.getvalue().split()) == "".join(words)
