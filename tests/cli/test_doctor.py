"""`dragoman doctor`: what it finds, what is wrong, and what to do next."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dragoman import ChatHistory, Provider, SessionIdentity, Target
from dragoman.cli import doctor, reachable_models
from dragoman.cli.commands import dragoman as command
from dragoman.providers import registry
from tests.cli.loopback import listed, refused, serving
from tests.cli.samples import SECRET

HERE = reachable_models.servers


@pytest.fixture(autouse=True)
def nothing_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No registered providers, servers, keys, stores or models."""
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(reachable_models, "servers", list)
    for variable in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.delenv("DRAGOMAN_HISTORY", raising=False)


def run(*arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(command, ["doctor", *arguments])


def rows(done: Result, kind: str) -> list[dict[str, Any]]:
    """The findings of one kind."""
    return [row for row in json.loads(done.stdout) if row["kind"] == kind]


def test_a_new_user_gets_the_shortest_way_to_start(tmp_path: Path) -> None:
    """An empty setup isn't wrong, and looking creates no files."""
    before = sorted(tmp_path.rglob("*"))
    done = run()
    assert done.exit_code == 0
    assert {row["state"] for row in json.loads(done.stdout)} <= {"ok", "missing", "hint"}
    assert rows(done, "store")[0]["state"] == "missing"
    assert rows(done, "next")[0]["found"].startswith("dragoman tour ")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_table_says_the_same() -> None:
    """The table is for people and has the hints below it."""
    done = run("--table")
    assert done.stdout.splitlines()[0].split() == ["what", "name", "state", "found"]
    assert "Next steps:\n  dragoman tour " in done.stdout


def test_missing_extras_say_how_to_install_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing extra isn't a problem."""
    monkeypatch.setattr(doctor, "_EXTRAS", {"local": ("no_such_package",), "cli": ("click",)})
    done = run()
    assert [(row["name"], row["state"]) for row in rows(done, "extra")] == [
        ("local", "missing"), ("cli", "ok"),
    ]  # fmt: skip
    assert "pip install 'dragoman[local]'" in done.stdout


def test_keys_are_named_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key whose provider needs another variable as well is a problem."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", SECRET)
    done = run()
    assert done.exit_code == 1
    assert SECRET not in done.output
    found = {row["name"]: row for row in rows(done, "provider")}
    assert (found["openai"]["state"], found["openai"]["found"]) == ("ok", "OPENAI_API_KEY is set")
    assert found["azure"]["state"] == "wrong"
    assert "AZURE_OPENAI_RESOURCE" in found["azure"]["found"]
    assert rows(done, "next")[0]["found"].startswith("dragoman models openai ")


def test_running_servers_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of their models are listed; absent servers aren't mentioned, broken ones are wrong."""
    monkeypatch.setattr(reachable_models, "servers", lambda: ["well", "gone", "broken"])
    targets = (Target(dialect="openai-chat"),)
    with serving(listed("a", "b", "c", "d")) as well, serving(refused(500, "x")) as broken:
        registry.register(Provider("well", targets, f"{well.url}/v1"))
        registry.register(Provider("broken", targets, f"{broken.url}/v1"))
        registry.register(Provider("gone", targets, "http://127.0.0.1:9/v1"))
        done = run()
    assert done.exit_code == 1
    assert [(row["name"], row["state"]) for row in rows(done, "server")] == [
        ("well", "ok"), ("broken", "wrong"),
    ]  # fmt: skip
    assert rows(done, "server")[0]["found"] == "a, b, c and 1 more"
    assert rows(done, "next")[0]["found"].startswith("dragoman chat well ")


def test_servers_are_searched_at_their_usual_addresses() -> None:
    """Only servers on this machine, none on the network."""
    assert {"ollama", "lmstudio", "llama.cpp", "vllm"} <= set(HERE())
    assert not {"openai", "anthropic", "groq"} & set(HERE())


def test_the_store_is_inspected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It says how many conversations the store has, or why it can't be read."""
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    monkeypatch.setenv("DRAGOMAN_HISTORY", url)
    assert rows(run(), "store")[0]["state"] == "missing"
    assert not (tmp_path / "chats.db").exists()
    with ChatHistory.open_sync(SessionIdentity(chat="7"), url) as history:
        history.add("Hi")
    assert rows(run(), "store")[0]["found"].endswith(": 1 conversation")
    (tmp_path / "chats.db").write_bytes(b"no database at all, but long enough to be read as one")
    done = run()
    assert done.exit_code == 1
    assert rows(done, "store")[0]["state"] == "wrong"
    assert rows(done, "next")[-1]["found"].startswith("dragoman history verify ")
