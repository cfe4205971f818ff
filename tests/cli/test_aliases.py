"""Aliases: short names for models, and the model that is asked where none is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dragoman.cli.commands import dragoman as command
from tests.cli.loopback import said, serving
from tests.cli.terminals import CTRL_D, dragoman, terminal


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the aliases are."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data" / "dragoman" / "aliases.json"


def run(*arguments: str, stdin: str = "") -> Result:
    """Run a command."""
    return CliRunner().invoke(command, arguments, input=stdin)


def test_an_alias_stands_for_a_model_and_its_address() -> None:
    """With -m, as the first argument, in a chat, in a template, in the environment."""
    with serving(said("Yes.")) as vendor:
        address = ("--base-url", f"{vendor.url}/v1")
        assert run("aliases", "set", "lab", "openai-compatible:qwen", *address).exit_code == 0
        assert run("ask", "-m", "lab", "Hi").stdout == "Yes.\n"
        assert run("ask", "lab", "Hi").stdout == "Yes.\n"
        assert run("ask", "Hi", "-m", "lab", "--save", "t").exit_code == 0
        assert run("ask", "-t", "t").stdout == "Yes.\n"
        environment = {"DRAGOMAN_MODEL": "lab"}
        done = CliRunner().invoke(command, ["ask", "Hi"], env=environment)
        assert done.stdout == "Yes.\n"
    assert [came.json["model"] for came in vendor.came] == ["qwen"] * 4
    assert {came.json["messages"][0]["content"] for came in vendor.came} == {"Hi"}


def test_the_default_is_asked_where_no_model_is_named() -> None:
    """All words are the prompt then; a model that is named comes before it."""
    assert run("ask", "Hi", "there").exit_code == 2
    assert run("aliases", "set", "default", "echo:").exit_code == 0
    assert run("ask", "Hi", "there").stdout == "Hi there\n"
    assert run("chat", "--no-history", stdin="One\n").stdout == "One\n"
    Path("play.json").write_text('["Named."]')
    assert run("ask", "-m", "scripted:play.json", "Hi").stdout == "Named.\n"


def test_an_alias_may_stand_for_another_but_not_for_itself(file: Path) -> None:
    """In the end; the file stays as it was."""
    assert run("aliases", "set", "me", "echo:").exit_code == 0
    assert run("aliases", "set", "default", "me").exit_code == 0
    assert run("ask", "Hi").stdout == "Hi\n"
    before = file.read_bytes()
    done = run("aliases", "set", "me", "default")
    assert (done.exit_code, file.read_bytes()) == (2, before)
    assert "refers to itself" in done.stderr


@pytest.mark.parametrize(
    ("alias", "model", "told"),
    [
        ("openai", "echo:", "is the name of a provider"),
        ("a b", "echo:", "letters, digits"),
        ("../x", "echo:", "letters, digits"),
        ("x", "opnai:gpt-5", "openai"),
        ("x", "nobody", "provider:model"),
    ],
)
def test_what_can_be_no_alias_is_refused(alias: str, model: str, told: str, file: Path) -> None:
    """With what to do instead, and nothing is written."""
    done = run("aliases", "set", alias, model)
    assert (done.exit_code, file.exists()) == (2, False)
    assert told in done.stderr


def test_aliases_are_listed_and_removed(file: Path) -> None:
    """The file is for its owner alone."""
    run("aliases", "set", "me", "echo:")
    assert json.loads(run("aliases").stdout) == [
        {"alias": "me", "model": "echo:", "base_url": None}
    ]
    assert file.stat().st_mode & 0o077 == 0
    assert "me     echo:" in run("aliases", "list", "--table").stdout
    assert run("aliases", "path").stdout.strip() == str(file)
    assert run("aliases", "remove", "me").exit_code == 0
    assert run("aliases", "remove", "me").exit_code == 2
    assert json.loads(run("aliases").stdout) == []


@pytest.mark.parametrize(
    "content", ["[", "[]", '{"a": 1}', '{"a": {"model": 1}}', '{"\\u001b": "x"}']
)
def test_a_broken_file_is_named(content: str, file: Path) -> None:
    """And a model in full works all the same."""
    file.parent.mkdir(parents=True)
    file.write_text(content)
    done = run("ask", "-m", "fast", "Hi")
    assert (done.exit_code, "aliases.json" in done.stderr) == (3, True)
    assert run("ask", "-m", "echo:", "Hi").stdout == "Hi\n"


def test_a_chat_takes_up_an_alias_and_tab_offers_it() -> None:
    """After /model, too."""
    run("aliases", "set", "mine", "echo:")
    with terminal(dragoman("chat", "mine")) as screen:
        screen.until_ready("echo: · stored as")
        screen.type("/model mi\t")
        screen.until_shown("/model mine")
        screen.type("\r")
        screen.until("now using echo:")
        screen.until_ready()
        screen.type(CTRL_D)
        assert screen.ended() == 0
