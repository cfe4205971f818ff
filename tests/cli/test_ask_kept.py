"""What `dragoman ask` keeps, and goes on with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dragoman.cli.commands import dragoman as command
from tests.cli.loopback import said, serving
from tests.cli.test_chat import TOOLS, call, own_folder, script

__all__ = ["own_folder"]


def run(*arguments: str, stdin: str = "", **environment: str) -> Result:
    """Run a command."""
    return CliRunner().invoke(command, arguments, input=stdin, env=environment)


def kept() -> list[dict[str, Any]]:
    """The sessions there are."""
    listed = run("history", "list", "--json")
    return json.loads(listed.stdout) if listed.exit_code == 0 else []


def test_question_and_answer_are_kept_and_continued() -> None:
    """Each question in a chat of its own, unless it continues one; --no-history keeps nothing."""
    assert run("ask", "echo:", "One").stdout == "One\n"
    assert run("ask", "echo:", "Two").stdout == "Two\n"
    assert run("ask", "-c", "Three").stdout == "Three\n"
    assert run("ask", "echo:", "Four", "--no-history").stdout == "Four\n"
    assert [(each["first_line"], each["messages"]) for each in kept()] == [("Two", 4), ("One", 2)]
    assert run("chat", "--continue", stdin="Five\n").stdout == "Five\n"
    assert kept()[0]["messages"] == 6


def test_tokens_are_kept_and_counted() -> None:
    """So that `history stats` adds up what was asked."""
    with serving(said()) as vendor:
        run("ask", "openai:m", "Where?", "--base-url", vendor.url)
    (total,) = json.loads(run("history", "stats", "--by", "model", "--json").stdout)
    assert (total["input"], total["output"]) == (9, 3)


def test_calls_are_kept_too() -> None:
    """With what came of them."""
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


def test_nothing_is_kept_where_the_store_is_memory() -> None:
    """For those who want it so for good."""
    assert run("ask", "echo:", "One", DRAGOMAN_HISTORY="memory:").stdout == "One\n"
    assert kept() == []


@pytest.mark.parametrize("option", [("-c",), ("--session", "s")])
def test_a_continued_chat_is_stored(option: tuple[str, ...]) -> None:
    """`--no-history` can't be combined with it."""
    done = run("ask", "echo:", "One", *option, "--no-history")
    assert (done.exit_code, "--no-history" in done.stderr) == (2, True)


def test_a_question_goes_on_as_the_chat_was_held() -> None:
    """With its instructions, settings, address and model; the command line comes first."""
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


def test_a_template_s_prompt_is_not_put_around_what_follows() -> None:
    """It was for the first question; its instructions stay."""
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


# --- what was kept, shown


def test_the_latest_is_shown_where_none_is_named() -> None:
    """As Markdown too, and the last answer alone, byte for byte."""
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


# --- lists, and functions on the command line


def test_a_list_of_a_schema_can_be_asked_for() -> None:
    """Of fields, or of a schema; the answer is checked."""
    done = run("ask", "echo:", '{"items": [{"n": 1}, {"n": 2}]}', "--schema-multi", "n int")
    assert (done.exit_code, done.stdout) == (0, '{"items":[{"n":1},{"n":2}]}\n'), done.stderr
    assert run("ask", "echo:", '{"items": [{"n": "x"}]}', "--schema-multi", "n int").exit_code == 3
    assert run("ask", "echo:", "x", "--schema-multi", "n", "--schema", "n").exit_code == 2


def test_a_tool_can_be_written_on_the_command_line() -> None:
    """A function with type hints is accepted; errors in it have their line."""
    text = "def weather(city: str) -> str:\n    'Of a city.'\n    return f'rain in {city}'\n"
    play = script(call("weather", city="Basel"), "An umbrella.")
    assert run("ask", "-T", text, play, "Weather?", "--session", "s").stdout == "An umbrella.\n"
    shown = run("history", "show", "s", "--markdown").stdout
    assert "rain in Basel" in shown
    broken = run("ask", "-T", "def weather(city: str -> str: pass", play, "Weather?")
    assert (broken.exit_code, "is not valid Python (line 1)" in broken.stderr) == (2, True)
