"""What `dragoman ask` stores, and how it continues a chat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dragoman.cli.commands import dragoman as command
from tests.cli.loopback import said, script, serving
from tests.cli.test_chat import TOOLS, call

pytestmark = pytest.mark.usefixtures("own_folder")


def run(*arguments: str, stdin: str = "", **environment: str) -> Result:
    """Run a command."""
    return CliRunner().invoke(command, arguments, input=stdin, env=environment)


def kept() -> list[dict[str, Any]]:
    """The stored sessions."""
    listed = run("history", "list", "--json")
    return json.loads(listed.stdout) if listed.exit_code == 0 else []


def test_question_and_answer_are_stored_and_continued() -> None:
    """Each question is a new session unless it continues one; --no-history stores nothing."""
    assert run("ask", "echo:", "One").stdout == "One\n"
    assert run("ask", "echo:", "Two").stdout == "Two\n"
    assert run("ask", "-c", "Three").stdout == "Three\n"
    assert run("ask", "echo:", "Four", "--no-history").stdout == "Four\n"
    assert [(each["first_line"], each["messages"]) for each in kept()] == [("Two", 4), ("One", 2)]
    assert run("chat", "--continue", stdin="Five\n").stdout == "Five\n"
    assert kept()[0]["messages"] == 6


def test_tokens_are_stored_and_counted() -> None:
    """`history stats` sums the usage of questions."""
    with serving(said()) as vendor:
        run("ask", "openai:m", "Where?", "--base-url", vendor.url)
    (total,) = json.loads(run("history", "stats", "--by", "model", "--json").stdout)
    assert (total["input"], total["output"]) == (9, 3)


def test_tool_calls_are_stored_too() -> None:
    """Calls are stored with their results."""
    Path("mine.py").write_text(TOOLS)
    play = script(call("weather", city="Basel"), "An umbrella.")
    assert run("ask", "-T", "mine.py", play, "Weather?").stdout == "An umbrella.\n"
    assert kept()[0]["messages"] == 4


@pytest.mark.parametrize("tools", [(), ("-T", "builtin")])
@pytest.mark.parametrize("store", ["sqlite:////proc/none/x.db", "nonsense://x", "sqlite:///folder"])
def test_a_failing_store_does_not_lose_the_answer(store: str, tools: tuple[str, ...]) -> None:
    """The problem is reported; the answer is printed, and the exit code is that of the answer."""
    Path("folder").mkdir()
    done = run("ask", "echo:", "One", *tools, DRAGOMAN_HISTORY=store)
    assert (done.exit_code, done.stdout) == (0, "One\n"), done.stderr
    assert "the question and the answer were not stored: " in done.stderr


def test_nothing_is_stored_with_a_memory_store() -> None:
    """`DRAGOMAN_HISTORY=memory:` turns storing off."""
    assert run("ask", "echo:", "One", DRAGOMAN_HISTORY="memory:").stdout == "One\n"
    assert kept() == []


@pytest.mark.parametrize("option", [("-c",), ("--session", "s")])
def test_a_continued_chat_is_stored(option: tuple[str, ...]) -> None:
    """`--no-history` can't be combined with it."""
    done = run("ask", "echo:", "One", *option, "--no-history")
    assert (done.exit_code, "--no-history" in done.stderr) == (2, True)


def test_a_continued_question_keeps_the_chat_s_settings() -> None:
    """Instructions, settings, address and model are restored; the command line overrides them."""
    with serving(said("Yes.")) as vendor:
        there = ("--base-url", f"{vendor.url}/v1")
        run("ask", "-m", "openai-compatible:m", *there, "-s", "Be brief.", "-o", "seed=7", "Hi")
        assert run("ask", "-c", "On").stdout == "Yes.\n"
        assert run("ask", "-c", "-o", "seed=8", "-s", "Be long.", "On").exit_code == 0
        assert run("chat", "-c", stdin="Go on\n").exit_code == 0
    bodies = [came.json for came in vendor.came]
    assert [body["messages"][0]["content"] for body in bodies] == [
        "Be brief.", "Be brief.", "Be long.", "Be long.",
    ]  # fmt: skip
    assert [body["seed"] for body in bodies] == [7, 7, 8, 8]
    assert [len(body["messages"]) for body in bodies] == [2, 4, 6, 8]


def test_a_template_s_prompt_is_not_applied_when_continuing() -> None:
    """The template's prompt is for the first question; its instructions stay."""
    run("ask", "-m", "echo:", "-s", "Be brief.", "Sum up: $input", "--save", "t")
    assert run("ask", "-t", "t", "A text.").stdout == "Sum up: A text.\n"
    assert run("ask", "-c", "Shorter").stdout == "Shorter\n"


def test_the_cost_is_printed_with_the_tokens() -> None:
    """If the price is known; echo: is free."""
    answer = said()
    answer.body["model"] = "gpt-5-mini"
    answer.body["usage"] = {"prompt_tokens": 100_000, "completion_tokens": 10_000}
    with serving(answer) as vendor:
        there = ("--base-url", vendor.url, "--dialect", "openai-chat")
        done = run("ask", "openai:gpt-5-mini", "Where?", "--usage", *there)
    assert done.stderr == "tokens: 100,000 in, 10,000 out · cost: $0.0450\n"


# --- showing stored sessions


def test_the_latest_session_is_shown_by_default() -> None:
    """`history show` has it as a table or Markdown; `--answer` has only the last answer."""
    Path("play.json").write_text('["Read *this*:\\n\\n```\\nx\\n```\\n"]')
    run("ask", "echo:", "Before")
    run("ask", "scripted:play.json", "What?")
    assert run("history", "show", "--answer").stdout == "Read *this*:\n\n```\nx\n```\n"
    shown = run("history", "show", "--markdown").stdout
    assert shown.startswith("## user\n\nWhat?\n\n## assistant")
    assert "\n\nRead *this*:\n" in shown
    assert "What?" in run("history", "show", "--table").stdout


def test_a_missing_session_is_reported() -> None:
    """The error explains what to do."""
    run("ask", "echo:", "One", "--session", "s")
    run("history", "delete", "s", "--yes")
    done = run("history", "show")
    assert (done.exit_code, "there are no sessions yet" in done.stderr) == (2, True)


# --- schemas of lists, and functions on the command line


def test_a_list_can_be_requested() -> None:
    """A list of objects is described by fields or a schema, and the answer is validated."""
    done = run("ask", "echo:", '{"items": [{"n": 1}, {"n": 2}]}', "--schema-multi", "n int")
    assert (done.exit_code, done.stdout) == (0, '{"items":[{"n":1},{"n":2}]}\n'), done.stderr
    assert run("ask", "echo:", '{"items": [{"n": "x"}]}', "--schema-multi", "n int").exit_code == 3
    assert run("ask", "echo:", "x", "--schema-multi", "n", "--schema", "n").exit_code == 2


def test_a_tool_can_be_written_on_the_command_line() -> None:
    """The source of a function with type hints is accepted; syntax errors name their line."""
    text = "def weather(city: str) -> str:\n    'Of a city.'\n    return f'rain in {city}'\n"
    play = script(call("weather", city="Basel"), "An umbrella.")
    assert run("ask", "-T", text, play, "Weather?", "--session", "s").stdout == "An umbrella.\n"
    shown = run("history", "show", "s", "--markdown").stdout
    assert "rain in Basel" in shown
    broken = run("ask", "-T", "def weather(city: str -> str: pass", play, "Weather?")
    assert (broken.exit_code, "is not valid Python (line 1)" in broken.stderr) == (2, True)
