"""The command line of `dragoman mcp`; tests/mcp/serving covers what it serves."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dragoman import ChatHistory, SessionIdentity
from dragoman.cli.commands import dragoman as command
from dragoman.cli.mcp import _Discreet
from tests.mcp.serving.processes import started

SECRET = "xyzzy-the-secret"


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store with three sessions, two of which have the same name."""
    url = f"sqlite:///{tmp_path}/chats.db"
    for names in ({"agent": "a", "chat": "1"}, {"agent": "b", "chat": "1"}, {"chat": "2"}):
        with ChatHistory.open_sync(SessionIdentity(**names), url) as history:
            history.add("Hello")
    return url


def run(*options: str) -> Result:
    """Run it without a client."""
    return CliRunner().invoke(command, ["mcp", *options])


def test_startup_errors_are_one_line(url: str, tmp_path: Path) -> None:
    """On standard error with an exit code; a client shows the line to its user."""
    for options, code, problem in (
        (("--store", f"sqlite:///{tmp_path}/none.db"), 4, "there is no store"),
        (("--store", "ftp://x"), 2, "the URL of a store must start with"),
        (("--store", url, "--session", "3"), 2, "matches no session"),
        (("--store", url, "--session", "1"), 2, "2 sessions match a --session name"),
        (("--store", url, "--session", "1", "--agent", "c"), 2, "matches no session"),
        (("--store", url, "--http", "x"), 2, "--http takes HOST:PORT"),
        (("--store", url, "--http", "192.0.2.1:1"), 2, "DRAGOMAN_MCP_TOKEN"),
    ):
        result = run(*options)
        assert result.exit_code == code
        assert result.stdout == ""
        assert problem in result.stderr
        assert result.stderr.count("\n") == 1


def test_an_address_in_use_is_reported(url: str) -> None:
    """The error says so."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run("--store", url, "--http", f"127.0.0.1:{taken.getsockname()[1]}")
    assert result.exit_code == 4
    assert "in use" in result.stderr


def test_without_the_sdk_it_says_what_to_install(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the extra."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    result = run("--store", url)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "dragoman[mcp]" in result.stderr


def test_scope_writing_and_keys_come_from_the_options(tmp_path: Path) -> None:
    """An encrypted store with its key, limited to one session, with writing."""
    key = tmp_path / "key"
    made = CliRunner().invoke(command, ["history", "keygen", str(key)])
    assert made.exit_code == 0, made.stderr
    url = f"sqlite:///{tmp_path}/sealed.db"
    keyed = ("--store", url, "--key-file", f"2026={key}")
    with started(*keyed, "--write") as spoken:  # creates the store
        spoken.shake_hands()
        for chat in ("one", "two"):
            arguments = {"session": chat, "text": f"{SECRET} {chat}", "create": True}
            assert spoken.call("append_message", **arguments)["isError"] is False
        assert spoken.leave()[0] == 0
    assert SECRET.encode() not in (tmp_path / "sealed.db").read_bytes()
    with started(*keyed, "--session", "one") as spoken:
        spoken.shake_hands()
        found = spoken.call("search", query=SECRET)["structuredContent"]["messages"]
        assert [each["excerpt"] for each in found] == [f"{SECRET} one"]
        spoken.ask("tools/list", {})
        names = [tool["name"] for tool in spoken.line()["result"]["tools"]]
        assert "append_message" not in names
        assert spoken.leave() == (0, b"", b"")


def test_the_environment_names_the_store(url: str) -> None:
    """DRAGOMAN_HISTORY works as for the history commands; clients set it in their configuration."""
    with started(env={"DRAGOMAN_HISTORY": url}) as spoken:
        spoken.shake_hands()
        listed = spoken.call("list_sessions")["structuredContent"]["sessions"]
        assert len(listed) == 3
        assert json.dumps(listed)


def test_logs_contain_locations_and_no_content() -> None:
    """Log texts of the SDK may quote content; ours never do."""
    form = _Discreet()
    info = (ValueError, ValueError(SECRET), None)
    theirs = logging.LogRecord(
        "mcp.server", logging.ERROR, "runner.py", 7, f"failed: {SECRET}", (), info
    )
    assert form.format(theirs) == "dragoman: error in mcp.server (runner.py:7, ValueError)"
    ours = logging.LogRecord("dragoman.mcp", logging.ERROR, "x.py", 7, "it %s", ("failed",), None)
    assert form.format(ours) == "dragoman: it failed"
