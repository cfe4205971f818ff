"""`dragoman history list`: recognizing conversations at a glance."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from dragoman import ChatHistory, Image, Message, SessionIdentity
from dragoman.cli import screen
from dragoman.cli.cards import Card, print_cards
from dragoman.cli.commands import dragoman as command
from dragoman.history import MemoryStorage, storage_at
from dragoman.history.session_summaries import looked_at
from dragoman.history.storage.protocol import Row
from dragoman.model import Origin, portal
from dragoman.model.invisible import invisible
from dragoman.model.parts import Text
from tests.cli.terminals import dragoman, terminal

ANA = SessionIdentity(agent="guide", chat="7", user="ana")
HOSTILE = "\x1b[31mred\x1b]0;title\x07\x9b2J\r\u202eback\nsecond line"


def answer(text: str, model: str) -> Message:
    """An answer of a model."""
    return Message.assistant(text, origin=Origin(dialect="anthropic", model=model))


def listed(url: str, *options: str) -> list[dict[str, Any]]:
    """The JSON output of the command."""
    result = CliRunner().invoke(command, ["history", "list", "--store", url, *options])
    assert result.exit_code == 0, result.stderr
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def stored(url: str, *messages: Message | str, identity: SessionIdentity = ANA) -> None:
    """Store a conversation."""
    with ChatHistory.open_sync(identity, url) as history:
        history.extend(messages)


def test_a_session_is_listed_with_its_first_line_and_last_model(tmp_path: Path) -> None:
    """It has its size and time; instructions aren't used as the first line."""
    url = f"sqlite:///{tmp_path}/chats.db"
    stored(
        url, Message.system("Be brief."), "\n  Where is\nthe Old Bridge?", answer("Mostar", "old"),
        "And?", answer("Stari Most", "new"), "Thanks",
    )  # fmt: skip
    (found,) = listed(url)
    assert (found["first_line"], found["unreadable"]) == ("Where is", None)
    assert (found["model"], found["messages"]) == ("new", 6)
    assert found["updated_at"] >= found["created_at"] > 1.7e9
    table = CliRunner().invoke(command, ["history", "list", "--store", url, "--table"]).stdout
    assert table.splitlines()[0].split("  ")[0] == "session"
    for fact in (ANA.digest[:12], "new", "6", "agent=guide chat=7 user=ana", "Where is"):
        assert fact in table.splitlines()[1]


@pytest.mark.parametrize(
    ("messages", "line"),
    [
        ([Message.system("Only instructions")], "Only instructions"),
        ([Message.assistant("I begin"), Message.user("Me too")], "Me too"),
        ([Message.assistant("I begin")], "I begin"),
        ([Message.system("Only instructions"), Message.assistant("I begin")], "I begin"),
        ([Message.developer("Only instructions"), Message.assistant("I begin")], "I begin"),
        ([Message.user("", Image.from_bytes(b"GIF89a", mime="image/gif"))], "[Image]"),
        ([Message.user(Image.from_bytes(b"GIF89a", mime="image/gif"))], "[Image]"),
        ([Message.user("x" * 10_000)], "x" * 199 + "…"),
        ([Message.user(" \n\n ")], ""),
        ([Message.user("Hi there!\n\nWhere is the bridge?")], "Where is the bridge?"),
        ([Message.user("Hello, where is it?")], "where is it?"),
        ([Message.user("Hello world in Rust")], "Hello world in Rust"),
        ([Message.user("Hi-fi: which one?")], "Hi-fi: which one?"),
        ([Message.user("Hey!")], "Hey!"),
        ([Message.user("Say hello, world")], "Say hello, world"),
        ([Message.user("## **Plan** for `now`\n\n- eat")], "Plan for now"),
        ([Message.user("```python\nx = 1\n```\nWhy?")], "Why?"),
        ([Message.user("```python\nx = 1\n```")], "x = 1"),
        ([Message.user("<context>\nIt rains.\n</context>")], "It rains."),
        ([Message.user(Text("notes.txt:\n\nbuy milk"), Text("What now?"))], "What now?"),
        ([Message.user(Text("my notes.txt:\n\nbuy milk"))], "my notes.txt"),
        (
            [Message.user("I have a question about my house. " + "It is old " * 20)],
            "I have a question about my house.",
        ),
        ([Message.user("many words " * 100)], "many words " * 17 + "many words…"),
    ],
)
def test_choice_of_the_first_line(tmp_path: Path, messages: Sequence[Message], line: str) -> None:
    """What the user says it is about, else another text, else the kind of content; not too long."""
    url = f"sqlite:///{tmp_path}/chats.db"
    stored(url, *messages)
    assert listed(url)[0]["first_line"] == line


def test_a_session_that_was_cleared_has_no_first_line(tmp_path: Path) -> None:
    """It is still listed."""
    url = f"sqlite:///{tmp_path}/chats.db"
    with ChatHistory.open_sync(ANA, url) as history:
        history.add("Hello")
        history.clear()
    (found,) = listed(url)
    assert (found["first_line"], found["messages"], found["model"]) == ("", 0, None)


def test_the_first_line_is_that_of_the_active_branch(tmp_path: Path) -> None:
    """If the first message was edited, the edited one is shown."""
    url = f"sqlite:///{tmp_path}/chats.db"
    with ChatHistory.open_sync(ANA, url) as history:
        first = history.add("Old beginning")
        history.extend(["more"] * 20)
        history.edit(first.id, "New beginning")
    assert listed(url)[0]["first_line"] == "New beginning"


class _Counting(MemoryStorage):
    """A store that counts the rows it hands out."""

    handed = 0

    async def rows(self, *arguments: Any, **options: Any) -> list[Row]:
        found = await super().rows(*arguments, **options)
        self.handed += len(found)
        return found


async def test_long_sessions_are_not_read_in_full() -> None:
    """Some messages from both ends are enough."""
    storage = _Counting()
    history = await ChatHistory.open(ANA, storage)
    await history.extend(["a"] * 5000)
    (found,) = await looked_at(storage, await storage.sessions())
    assert (found.messages, found.first_line) == (5000, "a")
    assert storage.handed < 10


def test_a_table_shows_the_latest_fifty(tmp_path: Path) -> None:
    """It says how to see all; JSON has all, or as many as requested."""
    url = f"sqlite:///{tmp_path}/chats.db"
    storage, _ = storage_at(url, blocking=True)
    for number in range(52):
        with ChatHistory.open_sync(SessionIdentity(chat=f"n{number}"), storage) as history:
            history.add("Hello")
    portal.run_inline(storage.close())
    result = CliRunner().invoke(command, ["history", "list", "--store", url, "--table"])
    lines = result.stdout.splitlines()
    assert len(lines) == 51
    assert "chat=n51" in lines[1]
    assert result.stderr == "the latest 50 of 52 sessions; --limit 52 shows all\n"
    assert [each["identity"]["chat"] for each in listed(url)[:2]] == ["n51", "n50"]
    assert len(listed(url)) == 52
    result = CliRunner().invoke(
        command, ["history", "list", "--store", url, "--table", "--limit", "52"]
    )
    assert (len(result.stdout.splitlines()), result.stderr) == (53, "")


def test_a_damaged_first_message_does_not_hide_the_session(tmp_path: Path) -> None:
    """The other sessions are listed as usual."""
    import sqlite3

    url = f"sqlite:///{tmp_path}/chats.db"
    stored(url, "Hello")
    with sqlite3.connect(tmp_path / "chats.db") as connection:
        connection.execute("UPDATE messages SET body = x'00ff'")
    connection.close()
    (found,) = listed(url)
    assert (found["first_line"], found["unreadable"], found["messages"]) == (None, "damaged", 1)
    table = CliRunner().invoke(command, ["history", "list", "--store", url, "--table"]).stdout
    assert "(damaged)" in table


def test_stored_text_can_t_affect_a_terminal(tmp_path: Path) -> None:
    """Tables and JSON contain no control characters; JSON escapes them."""
    url = f"sqlite:///{tmp_path}/chats.db"
    identity = SessionIdentity(chat=f"a{HOSTILE}")
    stored(url, HOSTILE, answer("b", HOSTILE), identity=identity)
    for options in ([], ["--table"]):
        text = CliRunner().invoke(command, ["history", "list", "--store", url, *options]).stdout
        assert invisible().sub("", text) == text
    assert listed(url)[0]["model"] == HOSTILE
    shown = CliRunner().invoke(command, ["history", "show", identity.digest, "--store", url])
    assert invisible().sub("", shown.stdout) == shown.stdout
    assert json.loads(shown.stdout)["value"][0]["parts"][0]["text"] == HOSTILE


@given(
    st.lists(
        st.builds(Card, st.tuples(*[st.text(max_size=40)] * 4), st.text(max_size=60), st.text()),
        max_size=5,
    ),
    st.integers(20, 120),
)
def test_cards_are_never_wider_than_the_terminal(cards: list[Card], width: int) -> None:
    """For any content and character widths, without control characters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        with redirect_stdout(StringIO()) as out:
            print_cards(cards)
    assert invisible().sub("", out.getvalue()) == out.getvalue()
    for line in out.getvalue().split("\n"):
        assert cell_len(line) <= width


@pytest.mark.parametrize("columns", [30, 40, 80, 200])
def test_a_terminal_shows_every_fact_within_its_width(tmp_path: Path, columns: int) -> None:
    """This includes narrow terminals and double-width characters."""
    url = f"sqlite:///{tmp_path}/chats.db"
    stored(url, "橋は どこ " * 60, answer("Mostar", "claude-sonnet-4-5"))
    with terminal(dragoman("history", "list", "--store", url), columns=columns) as it:
        assert it.ended() == 0
        lines = it.shown.strip().splitlines()
    text = "\n".join(lines)
    for fact in (ANA.digest[:12], "2 messages", "claude-sonnet-4-5", "guide/7/ana", "橋は"):
        assert fact in text
    assert max(map(cell_len, lines)) <= columns
    assert lines[-1].endswith("…")
    assert sum("橋は" in line for line in lines) == 1


def test_a_dumb_terminal_gets_no_escape_sequences(tmp_path: Path) -> None:
    """As in an editor's shell."""
    url = f"sqlite:///{tmp_path}/chats.db"
    stored(url, HOSTILE)
    with terminal(dragoman("history", "list", "--store", url), {"TERM": "dumb"}) as it:
        assert it.ended() == 0
        assert "\x1b" not in it.raw
        assert "␛[31mred" in it.raw


async def test_file_stores_are_listed_as_well(tmp_path: Path) -> None:
    """Every kind of store gives the same columns."""
    storage, _ = storage_at(f"file://{tmp_path}/chats")
    await storage.open()
    history = await ChatHistory.open(ANA, storage)
    await history.extend(["Hello", *["more"] * 20, answer("b", "m")])
    (found,) = await looked_at(storage, await storage.sessions())
    assert (found.first_line, found.model, found.messages) == ("Hello", "m", 22)
    await storage.close()


def test_a_long_wait_has_a_progress_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """It appears after a second on a terminal, not in a pipe and not once output is printed."""
    shown: list[str] = []

    class Seen(StringIO):
        def isatty(self) -> bool:
            return True

    clock = iter(range(0, 1000, 2))
    monkeypatch.setattr(screen, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr("sys.stderr", error := Seen())
    monkeypatch.setenv("TERM", "xterm")
    with screen.counting(32, "records") as advance:
        for _ in range(32):
            advance()
    shown.append(error.getvalue())
    with screen.counting(32, "records", seen=True) as advance:
        advance()
    assert error.getvalue() == shown[0]
    assert "32/32" in shown[0]
    assert "records" in shown[0]
