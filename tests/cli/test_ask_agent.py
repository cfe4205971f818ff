"""`dragoman ask` with tools, in stored chats, with templates and settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dragoman.cli.ask_options import model_and_words
from dragoman.cli.commands import dragoman as command
from tests.cli.loopback import on_terminal, said, script, serving
from tests.cli.test_chat import TOOLS, call, roles, stored

pytestmark = pytest.mark.usefixtures("own_folder")

FENCED = "So:\n\n```python\nprint(1)\n```\n\nor\n\n```\nx\n```\n"


def ask(*arguments: str, stdin: str | None = None) -> Result:
    """Run the command."""
    return CliRunner().invoke(command, ["ask", *arguments], input=stdin)


# --- tools


def test_tools_are_run_and_the_last_answer_is_printed() -> None:
    """Only the last answer is on standard output."""
    Path("mine.py").write_text(TOOLS)
    play = script({**call("weather", city="Basel"), "content": "Let me see."}, "An umbrella.")
    done = ask("-T", "mine.py", play, "Weather?", "--usage")
    assert (done.exit_code, done.stdout) == (0, "An umbrella.\n")
    assert "tokens: " in done.stderr


def test_calls_that_need_approval_are_asked_about_or_rejected() -> None:
    """On a terminal the user is asked; in a pipe the call is rejected."""
    Path("mine.py").write_text(TOOLS)
    play = script(call("wipe", path="x"), "Then not.")
    done = ask("-T", "mine.py", play, "Wipe x.", "--session", "s")
    assert (done.exit_code, done.stdout) == (0, "Then not.\n")
    assert "wipe was not run: it needs approval, and there is no terminal to ask on" in done.stderr
    assert "there is no terminal" in stored()[2].tool_results[0].text
    code, seen = on_terminal(
        "ask", "-T", "mine.py", play, "Wipe x.", "--session", "t", typed=b"y\n"
    )
    assert (code, "Allow it?" in seen) == (0, True), seen
    assert stored("t")[2].tool_results[0].text == "wiped"


def test_tools_and_a_schema_can_be_combined() -> None:
    """The printed answer is the validated JSON."""
    Path("mine.py").write_text(TOOLS)
    play = script(call("weather", city="Basel"), '{"rain": true}')
    done = ask("-T", "mine.py", play, "Rain?", "--schema", "rain bool")
    assert (done.exit_code, done.stdout) == (0, '{"rain":true}\n'), done.stderr


# --- chats


def test_a_question_can_be_part_of_a_chat() -> None:
    """`--session` and `-c` continue a chat; without a model, the last one used answers."""
    assert ask("echo:", "One", "--session", "s").stdout == "One\n"
    assert ask("-c", "Two").stdout == "Two\n"
    assert ask("-c", "echo:", "Three").stdout == "Three\n"
    assert roles(stored()) == ["user", "assistant"] * 3
    assert ask("echo:", "Not kept").exit_code == 0
    assert len(stored()) == 6


def test_there_must_be_a_chat_to_continue() -> None:
    """Without one, the error explains that."""
    done = ask("-c", "echo:", "Hi")
    assert done.exit_code == 2
    assert "there is no stored chat" in done.stderr


# --- which model


@pytest.mark.parametrize(
    ("words", "named", "usual", "expected"),
    [
        (("echo:", "Hi"), None, None, ("echo:", ("Hi",))),
        (("echo:", "Hi"), None, "openai:x", ("echo:", ("Hi",))),
        (("Hi", "there"), None, "openai:x", ("openai:x", ("Hi", "there"))),
        (("Hi",), None, None, (None, ("Hi",))),
        (("gpt-5", "Hi"), None, None, ("gpt-5", ("Hi",))),
        (("llama3:8b", "Hi"), None, None, ("llama3:8b", ("Hi",))),
        (("openai", "Hi"), None, None, ("openai", ("Hi",))),
        (("openai/gpt-5", "Hi"), None, None, ("openai/gpt-5", ("Hi",))),
        (("opnai:gpt-5", "Hi"), None, None, ("opnai:gpt-5", ("Hi",))),
        (("Note: this",), None, None, (None, ("Note: this",))),
        (("echo:", "Hi"), "openai:x", None, ("openai:x", ("echo:", "Hi"))),
        (("echo: is what?",), None, "openai:x", ("openai:x", ("echo: is what?",))),
        (("Note: this",), None, "openai:x", ("openai:x", ("Note: this",))),
        (("-",), None, "openai:x", ("openai:x", ("-",))),
        ((), None, None, (None, ())),
    ],
)
def test_the_first_argument_is_the_model_unless_another_is_named(
    words: tuple[str, ...], named: str | None, usual: str | None, expected: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """With -m all words are the prompt; with DRAGOMAN_MODEL too, unless the first is a model."""
    if usual is not None:
        monkeypatch.setenv("DRAGOMAN_MODEL", usual)
    assert model_and_words(words, named, None) == expected


# --- settings


def test_every_setting_can_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """`-o NAME=VALUE` sets any setting, and the last value counts."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with serving(said("Yes.")) as vendor:
        done = ask("openai:gpt-5", "--base-url", f"{vendor.url}/v1", "--dialect", "openai-chat",
                   "-o", "seed=7", "-o", "thinking=low", "-o", 'service={"user": "u1"}',
                   "-o", "seed=8", "--max-tokens", "99", "Hi")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    sent = vendor.came[0].json
    assert (sent["seed"], sent["reasoning_effort"], sent["user"]) == (8, "low", "u1")
    assert sent["max_completion_tokens"] == 99


@pytest.mark.parametrize(
    ("pair", "problem"),
    [
        ("temprature=1", "unknown setting temprature (did you mean temperature?)"),
        ("temperature", "write a setting as name=value"),
        ("temperature=hot", "temperature: must be a number"),
        ("seed=1.5", "seed: must be a whole number"),
        ("logprobs=maybe", "logprobs: must be on or off"),
        ("service=u1", "service: must be a JSON object"),
        ('service={"usr": "u1"}', "service: unknown field usr (did you mean user?)"),
        ("zzz=1", "the settings are max_tokens, temperature"),
        ("seed=", "seed: needs a value"),
    ],
)
def test_a_setting_that_can_t_be_read(pair: str, problem: str) -> None:
    """The error lists the accepted values."""
    done = ask("echo:", "-o", pair, "Hi")
    assert done.exit_code == 2
    assert problem in done.stderr


# --- what is printed


def test_only_the_code_is_printed_on_request() -> None:
    """-x prints the first code block unchanged, or the whole answer if there is none."""
    assert ask(script(FENCED), "-x", "Code?").stdout == "print(1)\n"
    done = ask(script("None."), "-x", "Code?")
    assert (done.exit_code, done.stdout) == (0, "None.\n")
    assert "there is no code block" in done.stderr


@pytest.mark.parametrize(
    "schema",
    ["city", "city str", "city: where it is", "city\n", '{"type": "object", "required": ["city"]}'],
)
def test_short_schemas(schema: str) -> None:
    """`--schema` accepts field names or a JSON Schema."""
    done = ask("echo:", '{"city": "Mostar"}', "--schema", schema)
    assert (done.exit_code, done.stdout) == (0, '{"city":"Mostar"}\n'), done.stderr
    assert ask("echo:", '{"town": "Mostar"}', "--schema", schema).exit_code == 3


@pytest.mark.parametrize("schema", ["city foo", "nowhere.json", "", ",", "{", "a b c"])
def test_an_invalid_schema_is_reported(schema: str) -> None:
    """The error explains what is wrong."""
    assert ask("echo:", "{}", "--schema", schema).exit_code in {2, 3}


def test_unreadable_attachments_are_reported() -> None:
    """The error names the file, before anything is sent."""
    Path("folder").mkdir()
    for name, problem in {"none.txt": "there is no such file", "folder": "is a directory"}.items():
        done = ask("echo:", "-a", name, "Hi")
        assert (done.exit_code, f"{name}: {problem}" in done.stderr) == (2, True)


def test_json_is_the_last_response_also_with_tools() -> None:
    """`--json` prints the complete last response."""
    Path("mine.py").write_text(TOOLS)
    done = ask("-T", "mine.py", script(call("weather", city="x"), "Yes."), "?", "--json")
    assert json.loads(done.stdout)["kind"] == "Response"
