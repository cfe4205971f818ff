"""Templates: created, listed, and used by `ask` and `chat`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dragoman.cli.commands import dragoman as command
from tests.cli.loopback import said, serving


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of templates."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data" / "dragoman" / "templates"
    folder.mkdir(parents=True)
    return folder


def run(*arguments: str, stdin: str = "") -> Result:
    """Run a command."""
    return CliRunner().invoke(command, arguments, input=stdin)


def test_a_template_has_a_prompt_instructions_a_model_and_settings(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command line overrides it; piped input is $input."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    (folder / "brief.toml").write_text(
        'model = "openai:gpt-5"\nsystem = "In $language."\nprompt = "Sum up: $input"\n'
        '[defaults]\nlanguage = "English"\n[settings]\nseed = 7\nverbosity = "low"\n'
    )
    with serving(said("Yes.")) as vendor:
        there = ("--base-url", f"{vendor.url}/v1", "--dialect", "openai-chat")
        assert run("ask", "-t", "brief", *there, stdin="A text.").stdout == "Yes.\n"
        run("ask", "-t", "brief", "-p", "language", "Turkish", "-o", "seed=8", *there, stdin="B.")
    first, second = (came.json for came in vendor.came)
    assert [m["content"] for m in first["messages"]] == ["In English.", "Sum up: A text."]
    assert (first["model"], first["seed"], first["verbosity"]) == ("gpt-5", 7, "low")
    assert second["messages"][0]["content"] == "In Turkish."
    assert second["seed"] == 8


def test_each_message_of_a_chat_is_put_into_the_template(folder: Path) -> None:
    """A template without $input comes before the message."""
    (folder / "loud.toml").write_text('model = "echo:"\nprompt = "$input!"\n')
    (folder / "first.toml").write_text('model = "echo:"\nprompt = "Be brief."\n')
    chat = run("chat", "--no-history", "-t", "loud", stdin="One\nTwo $x\n")
    assert chat.stdout == "One!\nTwo $x!\n"
    assert run("ask", "-t", "first", "Hi", stdin="").stdout == "Be brief.\n\nHi\n"


def test_a_question_can_be_saved_as_a_template(folder: Path) -> None:
    """--save sends nothing; the template then asks the same."""
    done = run("ask", "echo:", "-s", 'Say "no"\n', "-o", "temperature=0.2", "-o", 'stop=["a"]',
               "-o", 'service={"user": "u"}', "Well, $input?", "--save", "mine")  # fmt: skip
    assert (done.exit_code, done.stdout) == (0, ""), done.stderr
    assert (folder / "mine.toml").stat().st_mode & 0o077 == 0
    assert run("ask", "-t", "mine", "really", stdin="").stdout == "Well, really?\n"
    assert 'stop = ["a"]' in run("templates", "show", "mine").stdout


def test_templates_are_listed(folder: Path) -> None:
    """A broken one says what is wrong with it."""
    (folder / "good.toml").write_text('model = "echo:"\nsystem = "In $language."\n')
    (folder / "bad.toml").write_text("model = \n")
    listed = json.loads(run("templates", "list", "--json").stdout)
    assert [(row["name"], row["model"]) for row in listed] == [("bad", None), ("good", "echo:")]
    assert "is not TOML (line 1)" in listed[0]["text"]
    assert "In $language." in run("templates", "list", "--table").stdout
    assert run("templates", "path").stdout == f"{folder}\n"


def test_a_template_can_be_edited(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's editor is opened; a new template starts with an example."""
    Path("editor.py").write_text(
        "import sys, pathlib\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "path.write_text(path.read_text() + '# mine')\n"
    )
    monkeypatch.setenv("EDITOR", f"{sys.executable} editor.py")
    for count in (1, 2):
        done = run("templates", "edit", "fresh")
        assert done.exit_code == 0, done.stderr
        assert (folder / "fresh.toml").read_text().count("# mine") == count
    assert run("ask", "-m", "echo:", "-t", "fresh", "x").stdout == "Summarise this: x\n"
    monkeypatch.setenv("EDITOR", "true")
    assert "nothing was changed" in run("templates", "edit", "fresh").stderr


@pytest.mark.parametrize(
    ("content", "code", "problem"),
    [
        (None, 2, "there is no template mine"),
        ("x = 1\n", 3, "unknown field x; the fields are model"),
        ("modle = 'x'\n", 3, "unknown field modle (did you mean model?)"),
        ("prompt = 1\n", 3, "prompt has the wrong type"),
        ("tools = [1]\n", 3, "tools must be FILE.py or MODULE:NAME"),
        ("[settings]\ntemprature = 1\n", 3, "did you mean temperature?"),
        ("[settings]\ntemperature = 'hot'\n", 3, "must be a number"),
        ("prompt = '$who $input'\n", 2, "give -p who VALUE"),
        ("system = '$input'\n", 2, "$input is only allowed in the prompt"),
        ("\x00", 3, "is not TOML"),
    ],
)
def test_an_unusable_template_is_reported(
    folder: Path, content: str | None, code: int, problem: str
) -> None:
    """The error says what is wrong."""
    if content is not None:
        (folder / "mine.toml").write_text(content)
    done = run("ask", "-m", "echo:", "-t", "mine", "Hi")
    assert (done.exit_code, problem in done.stderr) == (code, True), done.stderr


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".x", "x" * 100, "a\x1b"])
def test_a_template_name_is_not_a_path(name: str, folder: Path) -> None:
    """Nothing is read or written outside the folder."""
    for arguments in (("ask", "-m", "echo:", "Hi", "--save", name), ("templates", "show", name)):
        assert run(*arguments).exit_code == 2
    assert [*folder.parent.rglob("*.toml")] == []


def test_values_need_a_template() -> None:
    """Otherwise they would be ignored."""
    assert run("ask", "echo:", "-p", "a", "b", "Hi").exit_code == 2


def test_the_default_template_is_used_if_no_model_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the model and its address; naming a model bypasses it."""
    with serving(said("Yes.")) as vendor:
        saved = run("ask", "-m", "openai-compatible:m", "--base-url", f"{vendor.url}/v1",
                    "-s", "Be brief.", "--save", "default")  # fmt: skip
        assert saved.exit_code == 0, saved.stderr
        assert run("ask", "Is it", "old?").stdout == "Yes.\n"
        assert run("chat", "--no-history", stdin="Well?\n").stdout == "Yes.\n"
        assert run("ask", "echo:", "Hi").stdout == "Hi\n"
        monkeypatch.setenv("DRAGOMAN_MODEL", "echo:")
        assert run("ask", "Hi").stdout == "Hi\n"
    sent = [[m["content"] for m in came.json["messages"]] for came in vendor.came]
    assert sent == [["Be brief.", "Is it old?"], ["Be brief.", "Well?"]]
    assert (folder / "default.toml").is_file()
