"""`dragoman chat` in a pipe: each input line is a message, and answers are plain text."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dragoman import Messages
from dragoman.cli.commands import dragoman as command
from dragoman.transport.model import open_model
from tests.cli.loopback import script, serving, streamed

pytestmark = pytest.mark.usefixtures("own_folder")
TOOLS = '''
from dragoman import tool

@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"

@tool(requires_approval=True)
def wipe(path: str) -> str:
    """Delete a file."""
    return "wiped"

def not_a_tool() -> str:
    """Never offered: the others are made by @tool."""
    return ""
'''


def run(*arguments: str, stdin: str = "") -> Result:
    """Run the command."""
    return CliRunner().invoke(command, ["chat", *arguments], input=stdin)


def call(name: str, id: str = "call_1", **arguments: Any) -> dict[str, Any]:
    """A script step that calls a tool."""
    return {"role": "assistant", "tool_calls": [
        {"id": id, "type": "function",
         "function": {"name": name, "arguments": json.dumps(arguments)}}]}  # fmt: skip


def stored(session: str = "s") -> Messages:
    """The messages of a stored chat."""
    shown = CliRunner().invoke(
        command, ["history", "show", "--agent", "chat", "--chat", session, "--json"]
    )
    assert shown.exit_code == 0, shown.output
    return Messages.from_json(shown.stdout)


def roles(messages: Messages) -> list[str]:
    """The roles of the messages, in order."""
    return [message.role.value for message in messages]


def test_help_imports_neither_the_model_nor_the_network() -> None:
    """`--help` stays fast: no heavy package is imported."""
    code = (
        "import sys\n"
        "from dragoman.cli.commands import dragoman\n"
        "for name in ('chat', 'tour'):\n"
        "    dragoman([name, '--help'], standalone_mode=False)\n"
        "heavy = ('rich', 'prompt_toolkit', 'msgspec', 'aiohttp', 'dragoman.model',"
        " 'dragoman.transport')\n"
        "sys.exit(','.join(name for name in sys.modules if name.startswith(heavy)) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_pipe_and_ask_import_no_line_editor() -> None:
    """The line editor is only imported for a chat on a terminal."""
    code = (
        "import sys\n"
        "from dragoman.cli.commands import dragoman\n"
        "for words in (['chat', 'echo:', '--no-history'], ['ask', 'echo:', 'Hi']):\n"
        "    dragoman(words, standalone_mode=False)\n"
        "sys.exit('prompt_toolkit' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], input=b"Hi\n", check=False)
    assert done.returncode == 0


# --- messages and answers


def test_each_line_is_a_turn_and_answers_are_plain_text() -> None:
    """Standard output has only the answers, without prompts and colours."""
    done = run("echo:", stdin="Hello **there**\n\nAnd again\n")
    assert (done.exit_code, done.stdout) == (0, "Hello **there**\nAnd again\n")
    assert "\x1b" not in done.output


@pytest.mark.parametrize(
    ("stdin", "answer"),
    [
        ("one\\\ntwo\n", "one\ntwo\n"),
        ('"""one\n\ntwo"""\nthree\n', "one\n\ntwo\nthree\n"),
        ('"""\none\n"""\n', "one\n"),
        ("never ended\\\n", "never ended\n\n"),
        ("//etc is a folder\n", "/etc is a folder\n"),
    ],
)
def test_messages_of_several_lines(stdin: str, answer: str) -> None:
    """A trailing backslash or triple quotes continue a message; a leading `//` stands for `/`."""
    done = run("echo:", stdin=stdin)
    assert (done.exit_code, done.stdout.strip()) == (0, answer.strip())


def test_the_conversation_is_sent_to_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request has the instructions, the settings and all earlier messages."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with serving(streamed("In", " Mostar.")) as vendor:
        done = run("openai:gpt-4.1", "--base-url", f"{vendor.url}/v1", "--system", "Be brief.",
                   "--max-tokens", "9", "--dialect", "openai-chat",
                   stdin="Where is it?\nSure?\n")  # fmt: skip
    assert (done.exit_code, done.stdout) == (0, "In Mostar.\nIn Mostar.\n")
    second = vendor.came[1].json
    assert [m["content"] for m in second["messages"]] == [
        "Be brief.", "Where is it?", "In Mostar.", "Sure?"]  # fmt: skip
    assert "tools" not in second


def test_thinking_can_be_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--thinking` takes an effort or a number of tokens."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with serving(streamed("Yes.")) as vendor:
        run("openai:gpt-5", "--base-url", f"{vendor.url}/v1", "--thinking", "low",
            "--dialect", "openai-chat", stdin="Well?\n")  # fmt: skip
    assert vendor.came[0].json["reasoning_effort"] == "low"


# --- tools


def test_tools_from_a_file_are_run() -> None:
    """If a file uses @tool, only those functions are tools; results go to the model."""
    Path("mine.py").write_text(TOOLS)
    done = run("--tools", "mine.py", script(call("weather", city="Basel"), "Take an umbrella."),
               "--session", "s", stdin="Weather?\n")  # fmt: skip
    assert (done.exit_code, done.stdout) == (0, "Take an umbrella.\n")
    messages = stored()
    assert roles(messages) == ["user", "assistant", "tool", "assistant"]
    assert messages[2].tool_results[0].text == "rain in Basel"


def test_tools_can_be_named_by_module() -> None:
    """`--tools` accepts module:function, module:list or a whole module."""
    Path("bag.py").write_text('def f() -> str:\n    """F."""\n    return "f"\nall_of_it = [f]\n')
    for name in ("bag:f", "bag:all_of_it", "bag"):
        done = run("--tools", name, "echo:", stdin="/tools\n/tool f\n")
        assert (done.exit_code, done.stdout) == (0, "f\n"), done.stderr
        assert "f     F." in done.stderr


def test_local_models_have_built_in_tools() -> None:
    """Local models get built-in tools unless `--no-tools` is given."""
    done = run("echo:", stdin='/tool calculate {"expression": "6 * (3 + 4)"}\n')
    assert done.stdout == "42\n"
    done = run("--no-tools", "echo:", stdin="/tools\n")
    assert "there are no tools" in done.stderr


def test_calls_that_need_approval_are_rejected_in_a_pipe() -> None:
    """The model gets the reason, and the chat continues."""
    Path("mine.py").write_text(TOOLS)
    done = run("--tools", "mine.py", script(call("wipe", path="x"), "Then not."),
               "--session", "s", stdin="Wipe x.\n")  # fmt: skip
    assert (done.exit_code, done.stdout) == (0, "Then not.\n")
    assert "wipe was not run: it needs approval, and there is no terminal to ask on" in done.stderr
    assert (
        "it needs approval, and there is no terminal to ask on" in stored()[2].tool_results[0].text
    )


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("none.py", None, "there is no such file"),
        ("broken.py", "def (:", "is not valid Python (line 1)"),
        ("bad.py", "1 / 0", "can't be loaded (ZeroDivisionError at bad.py:1)"),
        ("empty.py", "x = 1", "contains no tools"),
        ("nowhere_at_all:f", None, "there is no module nowhere_at_all"),
        ("json:nothing_of_the_kind", None, "the module has no such attribute"),
        ("json:__name__", None, "a tool must be a function, not str"),
    ],
)
def test_invalid_tools_are_reported(name: str, content: str | None, problem: str) -> None:
    """The command ends with an error that names the file or module and the problem."""
    if content is not None:
        Path(name).write_text(content)
    done = run("--tools", name, "echo:", stdin="Hi\n")
    assert done.exit_code == 2
    assert f"{name}: {problem}" in done.stderr


# --- storage


def test_chats_are_stored_and_continued() -> None:
    """A chat is continued by name or as the latest; `history` lists it."""
    assert run("--session", "s", "echo:", stdin="One\n").exit_code == 0
    assert run("--session", "t", "echo:", stdin="Other\n").exit_code == 0
    assert run("--session", "s", "echo:", stdin="Two\n").exit_code == 0
    done = run("--continue", stdin="Three\n")  # with the model used last
    assert (done.exit_code, done.stdout) == (0, "Three\n")
    assert [m.text for m in stored()] == ["One", "One", "Two", "Two", "Three", "Three"]
    assert [m.text for m in stored("t")] == ["Other", "Other"]


def test_each_chat_is_a_session_of_its_own() -> None:
    """Each chat is a new session unless an option names one."""
    for _ in range(2):
        run("echo:", stdin="Hi\n")
    listed = CliRunner().invoke(command, ["history", "list", "--agent", "chat", "--json"])
    assert len(json.loads(listed.stdout)) == 2


def test_no_history_creates_no_store() -> None:
    """With --no-history, no database file is created."""
    done = run("--no-history", "echo:", stdin="Hi\n/undo\nYou\n")
    assert (done.exit_code, done.stdout) == (0, "Hi\nYou\n")
    assert not [*Path.cwd().glob("chats.db*")]


def test_an_unusable_store_ends_the_chat() -> None:
    """The exit code is the same as for `history`."""
    done = run("--store", "nonsense://x", "echo:", stdin="Hi\n")
    assert done.exit_code == 2
    assert "the URL of a store must start with" in done.stderr


# --- commands


def test_undo_removes_the_last_exchange_and_loses_nothing() -> None:
    """The chat continues on a branch from before it; the other branch remains."""
    run("--session", "s", "echo:", stdin="One\nTwo\n/undo\nThree\n/undo\n/undo\nFour\n")
    assert [m.text for m in stored()] == ["Four", "Four"]
    first = CliRunner().invoke(
        command, ["history", "show", "--chat", "s", "--branch", "0", "--json"]
    )
    assert [m.text for m in Messages.from_json(first.stdout)] == ["One", "One", "Two", "Two"]


def test_undo_removes_a_whole_round_of_tools() -> None:
    """Everything after the last user message is removed, and that message too."""
    said_twice = "/tool now\n/undo\nBye\n"
    run("--session", "s", "echo:", stdin=f"Hi\n{said_twice}")
    assert [m.text for m in stored()] == ["Hi", "Hi", "Bye", "Bye"]


def test_fork_continues_from_an_earlier_message() -> None:
    """Without a number it lists the messages."""
    done = run("--session", "s", "echo:", stdin="One\nTwo\nThree\n/fork\n/fork 2\nNew\n")
    assert done.exit_code == 0, done.stderr
    assert "2  Two" in done.stderr
    assert [m.text for m in stored()] == ["One", "One", "New", "New"]


@pytest.mark.parametrize("number", ["0", "3", "-1", "x", "²"])
def test_fork_accepts_only_numbers_of_messages(number: str) -> None:
    """Anything else is reported."""
    done = run("echo:", stdin=f"One\nTwo\n/fork {number}\n")
    assert done.exit_code == 2
    assert "a number from 1 to 2" in done.stderr


def test_retry_asks_for_another_answer() -> None:
    """The previous answer is kept on its own branch."""
    done = run("--session", "s", script("No.", "Yes."), stdin="Well?\n/retry\n")
    assert (done.exit_code, done.stdout) == (0, "No.\nYes.\n")
    assert [m.text for m in stored()] == ["Well?", "Yes."]


def test_the_model_is_switched_in_mid_conversation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The new model gets the whole conversation, including tools, in its own dialect."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with serving(streamed("Indeed.")) as vendor:
        there = f"{vendor.url}/v1"
        monkeypatch.setattr(
            "dragoman.cli.chat.model_commands.opened",
            lambda name, settings, **_: open_model(name, base_url=there, **settings),
        )
        done = run("echo:", "--session", "s",
                   stdin="/tool now\n/model\n/model openai:gpt-4.1 openai-chat\nSo?\n")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert "the model is echo:" in done.stderr
    assert "now using openai:gpt-4.1 in openai-chat" in done.stderr
    sent = vendor.came[0].json["messages"]
    assert [m["role"] for m in sent] == ["user", "assistant", "tool", "assistant", "user"]
    assert roles(stored()) == ["user", "assistant", "tool", "assistant", "user", "assistant"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("openai:gpt-5", "openai needs an API key: set OPENAI_API_KEY"),
        ("nobody:x", "unknown provider"),
        ("echo: anthropic", "doesn't accept --dialect"),
        ("local:", "no local model given"),
    ],
)
def test_a_model_that_can_t_be_used_is_an_error(name: str, problem: str) -> None:
    """In a pipe, an invalid /model ends the command with the exit code of `ask`."""
    done = run("echo:", stdin=f"/model {name}\n")
    assert done.exit_code == 2
    assert problem in done.stderr


def test_files_are_sent_with_the_next_message() -> None:
    """They are sent with no other message."""
    Path("note.txt").write_text("The bridge is old.")
    done = run("--session", "s", "echo:", stdin="/attach note.txt\nWhat?\nWell?\n")
    assert done.exit_code == 0
    messages = stored()
    assert "The bridge is old." in messages[0].text
    assert messages[0].text.endswith("What?")
    assert messages[2].text == "Well?"


@pytest.mark.parametrize(("rest", "code"), [("", 2), (" none.txt", 4)])
def test_an_unreadable_attachment_is_reported(rest: str, code: int) -> None:
    """The error names the file."""
    done = run("echo:", stdin=f"/attach{rest}\n")
    assert done.exit_code == code
    assert rest.strip() in done.stderr


def test_conversations_are_saved() -> None:
    """/save writes canonical JSON or Markdown, and never overwrites a file."""
    Path("taken.md").write_text("mine")
    done = run("--session", "s", "echo:",
               stdin="Hi\n/tool now\n/save a.json\n/save a.md\n/save taken.md\n")  # fmt: skip
    assert done.exit_code == 4
    assert Messages.from_json(Path("a.json").read_bytes()) == stored()
    readable = Path("a.md").read_text()
    assert readable.startswith("## user\n\nHi\n\n## assistant (echo)\n\nHi\n")
    assert "```\nnow {}\n```" in readable
    assert Path("taken.md").read_text() == "mine"


def test_a_session_name_is_not_used_as_a_path(tmp_path: Path) -> None:
    """/save writes into the current folder, whatever the session's name."""
    run("--session", "../../etc/x", "echo:", stdin="Hi\n/save\n")
    assert [path.name for path in tmp_path.glob("*.json")] == ["-..-etc-x.json"]


def test_usage_reports_tokens_and_cost() -> None:
    """Before a request there is none; the echo model costs nothing."""
    assert "no requests yet" in run("echo:", stdin="/usage\n").stderr
    assert "cost: $0" in run("echo:", stdin="Hi\n/usage\n").stderr
    done = run("--usage", "echo:", stdin="Hi there\n")
    assert "tokens: 2 in, 2 out (estimated) · cost: $0" in done.stderr


def test_an_unknown_price_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The total is unknown if the price of any request is."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with serving(streamed("Yes.")) as vendor:
        done = run("openai:no-such-model", "--base-url", f"{vendor.url}/v1", "--dialect",
                   "openai-chat", stdin="Well?\n/usage\n/model echo:\nHi\n/usage\n")  # fmt: skip
    assert "cost: unknown\n" in done.stderr
    assert "cost: $0, plus an unknown amount for 1 of 2 answers" in done.stderr


def test_an_unknown_command_lists_the_known_ones() -> None:
    """With a suggestion if one is similar."""
    done = run("echo:", stdin="/xyzzy\n")
    assert done.exit_code == 2
    assert "there is no command /xyzzy; the commands are /model, /system" in done.stderr
    assert "there is no command /undp (did you mean /undo?)" in run("echo:", stdin="/undp\n").stderr
    assert "/undo" in run("echo:", stdin="/help\n").stderr


def test_quit_ends_the_chat() -> None:
    """Lines after it are not sent."""
    done = run("echo:", stdin="Hi\n/quit\nNo\n")
    assert (done.exit_code, done.stdout) == (0, "Hi\n")


@pytest.mark.parametrize("name", ["undo", "fork", "retry", "save"])
def test_commands_that_need_messages_report_an_empty_chat(name: str) -> None:
    """/undo, /fork, /retry and /save are errors before the first message."""
    done = run("echo:", stdin=f"/{name}\n")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "there are no messages yet" in done.stderr
