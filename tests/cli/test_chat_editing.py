"""Editing messages on the input line of a chat, in a terminal."""

from __future__ import annotations

import signal
import termios
from pathlib import Path

import pytest

from dragoman.cli.chat.kept_lines import KeptLines
from tests.cli.loopback import Came, Goes, listed, serving
from tests.cli.terminals import CTRL_C, CTRL_D, dragoman, terminal
from tests.cli.test_chat_terminal import slow, stored

pytestmark = pytest.mark.usefixtures("own_folder")

TAB, ALT_ENTER, UP = "\t", "\x1b\r", "\x1b[A"
CODE = 'def f():\n    """Docs."""\n\n    return 1  # \\\n'


# --- several lines


def test_a_pasted_block_is_one_message() -> None:
    """Blank lines, quotes and backslashes are kept; Enter sends the block."""
    with terminal(dragoman("chat", "echo:", "--session", "slow")) as screen:
        screen.until_ready()
        screen.paste(CODE + "/undo\n")
        screen.until_shown("… /undo")
        screen.type("\r")
        screen.until_shown("/undo", count=2)
        screen.until_ready()
    assert [message.text for message in stored()] == [f"{CODE}/undo"] * 2


@pytest.mark.parametrize("text", ['"""\nDocs.\n"""\nimport x', "/etc/hosts\n/undo", "/nope\nx"])
def test_pasted_text_is_never_a_command(text: str) -> None:
    """Triple quotes at its start don't open a block, and a path is not a command."""
    with terminal(dragoman("chat", "echo:", "--session", "slow")) as screen:
        screen.until_ready()
        screen.paste(text)
        screen.until_shown(f"… {text.rpartition(chr(10))[2]}")
        screen.type("\r")
        screen.until_shown("Ctrl-D")
        screen.until_ready()
    assert stored()[0].text == text


def test_a_block_pasted_during_an_answer_is_one_message_too() -> None:
    """It waits for the prompt, like text that is typed ahead."""
    with terminal(slow("Well [waits] then", "Yes.")) as screen:
        screen.until_ready()
        screen.say("Hm?")
        screen.until_shown("Well")
        screen.paste("one\ntwo")
        screen.type(CTRL_C)
        screen.until_shown("… two")
        screen.type("\r")
        screen.until_ready("Yes.")
    assert [message.text for message in stored()] == ["Hm?", "Well", "one\ntwo", "Yes."]


def test_a_backslash_alt_enter_and_quotes_continue_a_message() -> None:
    """Enter alone sends it."""
    with terminal(dragoman("chat", "echo:", "--session", "slow")) as screen:
        screen.until_ready()
        screen.say("one\\")
        screen.until_shown("\n…")
        screen.type(f"two{ALT_ENTER}")
        screen.until_shown("… two\n…")
        screen.say("three")
        screen.until_ready("one\ntwo\nthree\n")
        screen.say('"""a')
        screen.until_shown('> """a\n…')
        screen.say('b"""')
        screen.until_ready("\na\nb\n")
    assert [message.text for message in stored()][::2] == ["one\ntwo\nthree", "a\nb"]


# --- input history


def test_inputs_of_earlier_chats_can_be_recalled(tmp_path: Path) -> None:
    """Arrow up recalls them, multi-line ones unchanged; only the owner can read the file."""
    with terminal(dragoman("chat", "echo:")) as screen:
        screen.until_ready()
        screen.paste("one\ntwo")
        screen.until_shown("… two")
        screen.type("\r")
        screen.until_ready("one\ntwo\n")
        screen.type(CTRL_D)
        assert screen.ended() == 0
    kept = tmp_path / "data" / "dragoman" / "chat-lines"
    assert kept.stat().st_mode & 0o077 == 0
    with terminal(dragoman("chat", "echo:", "--session", "slow")) as screen:
        screen.until_ready()
        screen.type(UP)
        screen.until_shown("> one\n… two")
        screen.type("\r")
        screen.until_ready("one\ntwo\n\n>")
    assert stored()[0].text == "one\ntwo"


def test_the_input_history_is_private_and_bounded(tmp_path: Path) -> None:
    """A file that others could read becomes private, and the oldest inputs are dropped."""
    path = tmp_path / "deep" / "lines"
    kept = KeptLines(path)
    kept.add("one\r\ntwo")
    path.chmod(0o644)
    kept.add("three")
    kept.add("  ")
    kept.add("x" * 100_000)
    assert path.stat().st_mode & 0o777 == 0o600
    assert kept.load() == ["one\ntwo", "three"]
    for number in range(2100):
        kept.add(str(number))
    assert kept.load()[-1] == "2099"
    assert len(path.read_text().splitlines()) <= 2000
    assert path.stat().st_mode & 0o777 == 0o600
    assert KeptLines(tmp_path / "lines" / "none").load() == []
    KeptLines(path / "below-a-file").add("nowhere")  # and nothing is raised


# --- completion


def test_tab_completes_commands_settings_files_and_sessions(tmp_path: Path) -> None:
    """A single match is inserted; several are listed."""
    (tmp_path / "bridge of stone.txt").write_text("Old.")
    (tmp_path / "evil\x1b]0;x\x07.txt").write_text("")
    with terminal(dragoman("chat", "echo:", "--session", "slow")) as screen:
        screen.until_ready()
        screen.type(f"/at{TAB}")
        screen.until_shown("> /attach")
        screen.type(f" br{TAB}")
        screen.until_shown("> /attach bridge of stone.txt")
        screen.type("\r")
        screen.until_ready("bridge of stone.txt will be sent with your next message")
        screen.say("Hello")
        screen.until_ready()
        screen.type(f"/set temp{TAB}")
        screen.until_shown("> /set temperature")
        screen.type(" 0.2\r")
        screen.until_ready("temperature: 0.2")
        screen.type(f"/sessions sl{TAB}")
        screen.until_shown("> /sessions slow")
        screen.type("\r")
        screen.until_ready("stored as slow\n")
        screen.type(f"/s{TAB}")
        screen.until_shown("list the chats, or continue one")
        screen.type(CTRL_C)
        screen.until_shown("to leave)")
        screen.until_ready()
        screen.type(f"/attach {TAB}")
        screen.until_shown("chats.db")
        assert "evil" not in screen.shown
        assert "\x1b]0;x" not in screen.raw


def test_tab_completes_models_that_can_be_switched_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's models are offered, without names that contain control characters."""

    def answer(came: Came) -> Goes:
        if came.path.endswith("/tags"):
            names = ("llama4:latest", "qwen4:8b", "evil\x1b]0;x\x07")
            return Goes({"models": [{"name": name, "model": name} for name in names]})
        return listed()

    with serving(answer) as vendor:
        monkeypatch.setenv("OLLAMA_HOST", vendor.url.removeprefix("http://"))
        with terminal(dragoman("chat", "echo:")) as screen:
            screen.until_ready()
            screen.type(f"/model oll{TAB}")
            screen.until_shown("> /model ollama:")
            screen.type(TAB)
            screen.until_shown("ollama:qwen4:8b")
            assert "evil" not in screen.shown
            screen.type(f"l{TAB}")
            screen.until_shown("> /model ollama:llama4:latest")
            screen.type("\r")
            screen.until_ready("now using ollama:llama4:latest")


# --- unusual terminals


def test_a_dumb_terminal_gets_no_control_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    """It still works, including error messages."""
    monkeypatch.setenv("NO_COLOR", "1")
    with terminal(dragoman("chat", "echo:", "--session", "slow"), {"TERM": "dumb"}) as screen:
        screen.until_ready()
        screen.say("Some **bold** words")
        screen.until_ready("Some bold words")
        screen.say("/attach nowhere")
        screen.until_ready("nowhere: there is no such file")
        screen.type(CTRL_C)
        screen.until_shown("to leave)")
        screen.until_ready()
        screen.type(CTRL_D)
        assert screen.ended() == 0
        assert "\x1b" not in screen.raw
    assert stored()[-1].text == "Some **bold** words"


@pytest.mark.parametrize(("columns", "rows"), [(20, 4), (8, 3), (3, 2)])
def test_a_tiny_window_is_enough(columns: int, rows: int) -> None:
    """Messages are sent and answers stored in a very small terminal."""
    with terminal(slow("A **rather** long answer, with several words."), columns=columns,
                  rows=rows) as screen:  # fmt: skip
        screen.until_shown(">")
        screen.type("Hi\r")
        screen.until_there("asked")
        screen.type(f"{CTRL_D}")
        assert screen.ended() == 0
    assert stored()[-1].text == "A **rather** long answer, with several words."


def test_resizing_a_window_loses_nothing() -> None:
    """At the prompt, and during an answer that is taller than the window."""
    lines = "\n".join(f"line {number:03}" for number in range(60))
    with terminal(slow(f"```\n{lines}\n [waits]")) as screen:
        screen.until_ready()
        screen.resize(60, 12)
        screen.say("Go")
        screen.until_shown("line 059")
        screen.resize(90, 20)
        screen.type(CTRL_C)
        screen.until_ready("(stopped; the answer so far is kept)")
        screen.say("/usage")
        screen.until_shown("tokens")
    assert "line 059" in stored()[-1].text


def test_a_signal_restores_the_terminal() -> None:
    """Line editing and echo are on again."""
    with terminal(dragoman("chat", "echo:")) as screen:
        before = termios.tcgetattr(screen.handle)
        screen.until_ready()
        assert termios.tcgetattr(screen.handle)[3] != before[3]
        screen.process.send_signal(signal.SIGTERM)
        assert screen.ended() == 143
        assert termios.tcgetattr(screen.handle)[:4] == before[:4]


# --- the clipboard


def test_an_answer_is_copied_by_the_terminal() -> None:
    """The whole answer or its last code block is copied."""
    with terminal(slow("So:\n\n```\nx = 1\n```\n\nDone.")) as screen:
        screen.until_ready()
        screen.say("Go")
        screen.until_ready("Done.")
        screen.say("/copy code")
        screen.until_ready("copied the last code block, 6 characters (with the terminal)")
        assert "\x1b]52;c;eCA9IDEK\x07" in screen.raw
