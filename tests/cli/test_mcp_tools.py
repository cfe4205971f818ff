"""`--mcp` and `--mcp-config`: tools of MCP servers in `chat` and `ask`."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dragoman.cli.commands import dragoman as command
from dragoman.cli.mcp_tools import _name, servers_named
from tests.cli.loopback import script
from tests.cli.terminals import dragoman, terminal
from tests.cli.test_chat import call, stored

pytestmark = pytest.mark.usefixtures("own_folder")
SMALL = [sys.executable, "-I", str(Path(__file__).parent.parent / "mcp" / "small_server.py")]
COMMAND = shlex.join(SMALL)


def run(*arguments: str, stdin: str = "") -> Result:
    """Run the command."""
    return CliRunner().invoke(command, arguments, input=stdin)


def kept(document: Any) -> str:
    """A file with MCP servers."""
    Path("mcp.json").write_text(json.dumps(document), encoding="utf-8")
    return "mcp.json"


def test_tools_of_servers_are_listed() -> None:
    """They are listed beside tools from files and need approval; several servers have prefixes."""
    done = run("chat", "--mcp", COMMAND, "-T", "builtin", "echo:", stdin="/tools\n")
    assert done.exit_code == 0, done.stderr
    listed = {line.split()[0]: line for line in done.stderr.splitlines() if line}
    assert {"now", "echo", "crash"} <= set(listed)
    assert "asks first" in listed["echo"]
    assert "asks first" not in listed["now"]
    both = kept({"mcpServers": {"kept": {"command": SMALL[0], "args": SMALL[1:]}}})
    done = run("chat", "--mcp", COMMAND, "--mcp-config", both, "echo:", stdin="/tools\n")
    assert "small_echo " in done.stderr
    assert "kept_echo " in done.stderr


def test_calls_are_not_run_if_nobody_can_approve() -> None:
    """In a pipe, for `chat` and `ask`."""
    play = script(call("echo", word="hi"), "Then not.")
    for arguments, stdin in ((("chat", play, "--session", "s"), "Go.\n"),
                             (("ask", play, "Go.", "--session", "t"), "")):  # fmt: skip
        done = run(*arguments, "--mcp", COMMAND, stdin=stdin)
        assert (done.exit_code, done.stdout) == (0, "Then not.\n"), done.stderr
        assert (
            "echo was not run: it needs approval, and there is no terminal to ask on" in done.stderr
        )
    assert stored("s")[2].tool_results[0].is_error is True


@pytest.mark.parametrize("kind", ["chat", "ask"])
def test_an_approved_call_is_run(kind: str) -> None:
    """The user approves it at the terminal; the server's answer reaches the model."""
    play = script(call("echo", word="hello there"), "So be it.")
    said = ("Go.",) if kind == "ask" else ()
    arguments = (kind, play, *said, "--mcp", COMMAND, "--session", "s")
    with terminal(dragoman(*arguments)) as screen:
        if kind == "chat":
            assert "echo, crash" in screen.until("hang")
            screen.until_ready()
            screen.say("Go.")
        screen.until('The model wants to run echo(word="hello there")')
        screen.until("Allow it?")
        screen.say("y")
        screen.until("So be it.")
    assert stored()[2].tool_results[0].text == "hello there"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--mcp", "no-such-command x"), "the command `no-such-command`"),
        (("--mcp", "'"), "takes a quoted command with its arguments"),
        (("--mcp", "https://"), "must look like https"),
        (("--mcp-config", "none.json"), "can't read the MCP servers file"),
    ],
)
@pytest.mark.parametrize("kind", ["chat", "ask"])
def test_unavailable_servers_are_reported(kind: str, arguments: Any, problem: str) -> None:
    """The command ends and says why."""
    done = run(kind, "echo:", *(("Hi",) if kind == "ask" else ()), *arguments, stdin="Hi\n")
    assert done.exit_code != 0
    assert problem in done.stderr
    assert "Traceback" not in done.stderr


def test_an_input_that_can_t_be_asked_for() -> None:
    """A file with a prompted input is an error in a pipe."""
    asked = {"inputs": [{"id": "key", "type": "promptString"}],
             "servers": {"a": {"command": "x", "env": {"KEY": "${input:key}"}}}}  # fmt: skip
    done = run("chat", "echo:", "--mcp-config", kept(asked), stdin="Hi\n")
    assert done.exit_code == 2
    assert "it needs the input key" in done.stderr


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("npx -y @modelcontextprotocol/server-filesystem /srv", "filesystem"),
        ("npx -y @modelcontextprotocol/server-memory@2026.8.31", "memory"),
        ("uvx mcp-server-fetch", "fetch"),
        ("python3.12 -I weather.py", "weather"),
        ("docker run -i --rm mcp/time", "time"),
        ("/usr/bin/github-mcp-server stdio", "github"),
        ("server", "server"),
    ],
)
def test_servers_get_readable_names(words: str, name: str) -> None:
    """They are named after the package, not after the command that runs it."""
    first, *rest = words.split()
    assert _name(first, rest) == name


def test_urls_are_servers_too() -> None:
    """They use streamable HTTP, or server-sent events if the URL says so."""
    first, second = servers_named(["https://mcp.example.com/v1/mcp", "http://localhost:1/sse"], ())
    assert [each.prefix for each in (first, second)] == ["mcp", "localhost"]
    assert [each._connections._transport.is_sse for each in (first, second)] == [False, True]  # type: ignore[attr-defined]
    assert [each.prefix for each in servers_named(["https://example.com/mcp"], ())] == [""]
