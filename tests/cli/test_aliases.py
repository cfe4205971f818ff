"""Aliases: short names for models, and the default model."""

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
    """The file that aliases are stored in."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data" / "dragoman" / "aliases.json"


def run(*arguments: str, stdin: str = "") -> Result:
    """Run a command."""
    return CliRunner().invoke(command, arguments, input=stdin)


def test_an_alias_stands_for_a_model_and_its_address() -> None:
    """An alias works with -m, as the first argument, in a template and in DRAGOMAN_MODEL."""
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


def test_the_default_alias_is_used_if_no_model_is_named() -> None:
    """All words are then the prompt; a model that is named takes precedence."""
    assert run("ask", "Hi", "there").exit_code == 2
    assert run("aliases", "set", "default", "echo:").exit_code == 0
    assert run("ask", "Hi", "there").stdout == "Hi there\n"
    assert run("chat", "--no-history", stdin="One\n").stdout == "One\n"
    Path("play.json").write_text('["Named."]')
    assert run("ask", "-m", "scripted:play.json", "Hi").stdout == "Named.\n"


def test_an_alias_may_refer_to_another_but_not_to_itself(file: Path) -> None:
    """A cycle is rejected and leaves the file unchanged."""
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
def test_invalid_aliases_are_rejected(alias: str, model: str, told: str, file: Path) -> None:
    """The error says what is wrong, and nothing is written."""
    done = run("aliases", "set", alias, model)
    assert (done.exit_code, file.exists()) == (2, False)
    assert told in done.stderr


def test_aliases_are_listed_and_removed(file: Path) -> None:
    """Aliases can be listed, located and removed; only the owner can read the file."""
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
def test_a_broken_alias_file_is_reported(content: str, file: Path) -> None:
    """The error names the file, and full model names still work."""
    file.parent.mkdir(parents=True)
    file.write_text(content)
    done = run("ask", "-m", "fast", "Hi")
    assert (done.exit_code, "aliases.json" in done.stderr) == (3, True)
    assert run("ask", "-m", "echo:", "Hi").stdout == "Hi\n"


def test_a_chat_accepts_an_alias_and_tab_completes_it() -> None:
    """An alias works as the chat's model and after /model."""
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
