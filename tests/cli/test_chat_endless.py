"""Nothing that is typed can end a chat, except leaving it."""

from __future__ import annotations

import asyncio
import io
import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from dragoman import Agent, ChatHistory, Message, SessionIdentity, ToolCall, tool
from dragoman.cli.chat.chatting import _converse
from dragoman.cli.chat.commands import COMMANDS, completions
from dragoman.cli.chat.talk import Talk
from dragoman.cli.chat.terminal import TerminalScreen
from dragoman.cli.commands import dragoman as command
from dragoman.cli.request_settings import setting_names
from dragoman.errors import StoreError
from dragoman.model.functions.tool import Tool
from dragoman.transport.model import open_model
from dragoman.transport.scripted import ScriptedModel


class Said:
    """A user who types these lines, gives the same answer to every question, and leaves."""

    def __init__(self, *lines: str, answer: str = "n") -> None:
        self.left = [*lines]
        self._answer = answer

    def message(self) -> str:
        """The next line."""
        if not self.left:
            raise EOFError
        return self.left.pop(0)

    def answer(self, question: str) -> str:  # noqa: ARG002 - the same to all
        """The answer to any question."""
        return self._answer

    def suggest(self, text: str) -> None:
        """Ignore the suggestion."""


@tool
def leaves() -> str:
    """A tool that tries to end the program."""
    raise SystemExit(3)


@tool
def fails(text: str = "") -> str:
    """A tool that raises an unexpected exception."""
    raise RuntimeError(text)


TOOLS: list[Tool[..., Any]] = [leaves, fails]


@contextmanager
def chat(*lines: str, model: Any = "echo:") -> Generator[tuple[Talk, Said, io.StringIO]]:
    """A chat on a terminal with a user who types these lines."""
    said, seen = Said(*lines), io.StringIO()
    console = Console(file=seen, force_terminal=True, width=80, height=24, highlight=False)
    with asyncio.Runner() as runner:
        history = runner.run(ChatHistory.open(SessionIdentity(agent="chat", chat="7"), "memory:"))
        talk = Talk(
            agent=Agent(open_model(model) if isinstance(model, str) else model, tools=TOOLS),
            history=history, screen=TerminalScreen(console), lines=said, runner=runner,
            tools=TOOLS,
        )  # fmt: skip
        yield talk, said, seen
        runner.run(talk.agent.model.close())


def outlives(*lines: str, model: Any = "echo:") -> str:
    """The output of a chat that accepts all of these lines."""
    with chat(*lines, model=model) as (talk, said, seen):
        _converse(talk)
        assert said.left == []
    assert "please report it" not in seen.getvalue()
    assert "Traceback" not in seen.getvalue()
    return seen.getvalue()


def shown(seen: io.StringIO) -> str:
    """The screen as one line without colours."""
    return " ".join(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen.getvalue()).split())


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with files of several kinds."""
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(60_000_000)


FILES = {
    "note.txt": b"The bridge is old.",
    "empty": b"",
    "binary": b"\x00\xff\xfe" * 40,
    "with blanks.txt": b"Hm.",
    "-": b"A file of that name.",
    "tools.py": b"def f() -> str:\n    '''F.'''\n    return ''\n",
    "ends.py": b"import sys\nsys.exit(4)\n",
    "raises.py": b"1 / 0\n",
}
NAMES = [*FILES, "folder", "pipe", "loop", "huge", "nowhere", "~nobody/x", "/dev/zero", "/dev/tty",
         "/", "..", "'note.txt'", '"with blanks.txt"', "with\\ blanks.txt", "'", "file:///nowhere",
         "x" * 5000, "a\x00b", "\ud800"]  # fmt: skip
MODELS = ["echo:", "nobody:x", "openai:gpt-5", "local:", "local:nowhere.gguf", "scripted:nowhere",
          "echo: anthropic", ":", "openai?chat=", "ollama:x", "/", "openai-compatible:x",
          "local:smollm2"]  # fmt: skip
VALUES = ["0.2", "-1", "nan", "1e999", "9" * 5000, "on", "none", "default", "[]", "{", '{"a": 1}',
          '["x"]', "null", "high", "", '{"store": "x"}', "[" * 5000, "²",
          "\u0661", "\ud800"]  # fmt: skip


def command_lines() -> st.SearchStrategy[str]:
    """Lines that begin with a command, valid or not."""
    names = st.sampled_from([name for name in COMMANDS if name != "quit"])
    settings = st.sampled_from([*setting_names(), "usage", "show_thinking", "temprature", "="])
    rests = st.one_of(
        st.just(""),
        st.sampled_from([*NAMES, *MODELS, *VALUES, "1", "2", "0", "99", "code"]),
        st.text(max_size=30),
        st.tuples(settings, st.sampled_from(["", " ", "="]), st.sampled_from(VALUES)).map("".join),
        st.sampled_from(["leaves", "fails", "fails {", 'fails {"text": 1}', "leaves x"]),
    )
    return st.tuples(names, st.sampled_from([" ", "  ", "\t", "\n"]), rests).map(
        lambda each: f"/{each[0]}{each[1]}{each[2]}"
    )


LINES = st.lists(
    st.one_of(
        command_lines(),
        st.text(max_size=40).map(lambda text: f"/{text}"),
        st.sampled_from(["Hello", "/", "//", "///", "/ help", "/etc/hosts", "", " ", "\x00", "🦆"]),
        st.text(max_size=40),
    ).filter(lambda line: line.strip().lower() not in {"/quit", "/exit"}),
    max_size=6,
)


@given(lines=LINES)
def test_no_line_ends_a_chat(lines: list[str]) -> None:
    """Any command with any arguments is executed, or a line says why not."""
    outlives(*lines, "/help")


@given(lines=LINES)
def test_in_a_pipe_no_line_is_an_internal_error(lines: list[str]) -> None:
    """The first invalid line ends the chat with one line and a documented exit code."""
    stdin = "".join(f"{line}\n" for line in lines).encode(errors="replace")
    arguments = ["chat", "echo:", "--no-history", "--tools", "tools.py"]
    done = CliRunner().invoke(command, arguments, input=stdin)
    assert done.exit_code in {0, 2, 3, 4, 5}
    assert "please report it" not in done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)


@given(text=st.one_of(command_lines(), st.text(max_size=30).map(lambda text: f"/{text}")))
def test_completion_never_fails(text: str) -> None:
    """Completions contain no control characters and replace a part of the typed text."""
    from dragoman.model.invisible import invisible

    with chat() as (talk, _, _):
        found = talk.run(completions(talk, text))
    assert not [each for each in found if invisible().search(each.text)]
    assert all(0 <= each.replaces <= len(text) for each in found)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nowhere.txt", "nowhere.txt: there is no such file"),
        ("folder", "folder: is a directory"),
        ("empty", "is empty"),
        ("huge", "exceeds the limit of 50.0 MB"),
        ("pipe", "pipe: is not a regular file"),
        ("/dev/zero", "/dev/zero: is not a regular file"),
        ("~nobody-at-all/x", "there is no such user"),
        ("a\x00b", "a␀b: is not a valid file name"),
        ("loop", "loop: "),
    ],
)
def test_attachment_errors_are_one_line(name: str, problem: str) -> None:
    """The chat continues, with nothing attached."""
    with chat(f"/attach {name}", "Hello") as (talk, said, seen):
        _converse(talk)
        messages = talk.run(talk.history.messages())
    assert said.left == []
    assert problem in shown(seen)
    assert [message.text for message in messages] == ["Hello", "Hello"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read every file")
def test_a_file_without_read_permission_is_one_line() -> None:
    """The line explains the missing permission."""
    Path("note.txt").chmod(0)
    assert "Permission denied" in outlives("/attach note.txt")


@pytest.mark.parametrize(
    "name", ["note.txt", "'note.txt'", "with blanks.txt", "with\\ blanks.txt", "-", "./note.txt"]
)
def test_file_names_can_be_quoted_or_dropped(name: str) -> None:
    """Quotes, escaped blanks and the form in which terminals insert dropped files are accepted."""
    with chat(f"/attach {name}", "What?") as (talk, _, _):
        _converse(talk)
        asked = talk.run(talk.history.messages())[0]
    assert len(asked.parts) == 2


def test_several_files_can_be_attached_at_once() -> None:
    """Each is a part of the message."""
    with chat('/attach note.txt "with blanks.txt"', "What?") as (talk, _, seen):
        _converse(talk)
        asked = talk.run(talk.history.messages())[0]
    assert len(asked.parts) == 3
    assert "note.txt, with blanks.txt will be sent" in seen.getvalue()


def test_a_failing_store_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The chat continues through every command, and works again once the store does."""

    async def broken(*_: Any, **__: Any) -> Any:
        msg = "the disk is full"
        raise StoreError(msg)

    everything = [f"/{name}" for name in COMMANDS if name not in {"quit", "help"}]
    with chat("Hello", *everything, "Still here") as (talk, said, seen):
        with monkeypatch.context() as patch:
            for name in ("append", "rows", "fork", "session", "sessions"):
                if hasattr(type(talk.history.storage), name):
                    patch.setattr(type(talk.history.storage), name, broken)
            _converse(talk)
        assert said.left == []
        said.left = ["Better"]
        _converse(talk)
        assert talk.run(talk.history.messages())[-1].text == "Better"
    assert "the disk is full" in seen.getvalue()
    assert "please report it" not in seen.getvalue()


def test_a_tool_can_t_end_the_chat() -> None:
    """Any exception is caught, `SystemExit` included."""
    calls = [Message.assistant(tool_calls=[ToolCall.create(name, name, {})])
             for name in ("leaves", "fails")]  # fmt: skip
    model = ScriptedModel([calls[0], calls[1], "So be it."])
    seen = outlives("Go on", "Go on", "/model echo:", "Hello", model=model)
    assert "a tool tried to end the program" in seen
    assert "Hello" in seen


def test_an_unreachable_model_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server listens at the address."""
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    seen = outlives("/model ollama:x", "Hello?", "/model echo:", "Hello!")
    assert "127.0.0.1:9" in seen
    assert "Hello!" in seen
