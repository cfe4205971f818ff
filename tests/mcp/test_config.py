"""Configuration files of other programs with their MCP servers."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import ConfigError, DragomanError
from dragoman.mcp import MCPServer, mcp_servers
from dragoman.mcp.transports import Http, Stdio

SMALL = str(Path(__file__).with_name("small_server.py"))


def transports(source: Any, **options: Any) -> dict[str, Any]:
    """The transport of each server in a file."""
    return {each.name: each._connections._transport for each in mcp_servers(source, **options)}


def kept(folder: Path, text: str) -> Path:
    """A file."""
    path = folder / "mcp.json"
    path.write_text(text, encoding="utf-8")
    return path


def test_claude_desktops_file(tmp_path: Path) -> None:
    """Commands, their arguments and variables."""
    path = kept(tmp_path, json.dumps({"mcpServers": {
        "files": {"command": "npx", "args": ["-y", "server", "/srv"], "env": {"KEY": "1", "N": 2}},
        "old": {"command": "x", "disabled": True},
    }, "globalShortcut": ""}))  # fmt: skip
    assert transports(path) == {
        "files": Stdio("npx", ("-y", "server", "/srv"), {"KEY": "1", "N": "2"}, None)
    }


def test_claude_codes_file(tmp_path: Path, monkeypatch: Any) -> None:
    """URLs, and environment variables with defaults."""
    monkeypatch.setenv("TOKEN", "sk-1")
    monkeypatch.delenv("HOST", raising=False)
    path = kept(tmp_path, json.dumps({"mcpServers": {
        "api": {"type": "http", "url": "https://${HOST:-example.com}/mcp",
                "headers": {"Authorization": "Bearer ${TOKEN}"}},
        "events": {"type": "sse", "url": "https://example.com/events"},
        "local": {"type": "stdio", "command": "${HOME_BIN:-/usr/bin}/serve", "args": []},
    }}))  # fmt: skip
    assert transports(path) == {
        "api": Http("https://example.com/mcp", {"Authorization": "Bearer sk-1"}),
        "events": Http("https://example.com/events", {}, is_sse=True),
        "local": Stdio("/usr/bin/serve", (), {}, None),
    }


VS_CODE = """
{
  // asked for once
  "inputs": [
    {"type": "promptString", "id": "key", "description": "API key", "password": true},
    {"type": "pickString", "id": "mode", "options": ["a", "b"], "default": "b"},
  ],
  "servers": {
    "files": {
      "type": "stdio", /* a comment, with "quotes" */
      "command": "npx",
      "args": ["server", "${workspaceFolder}/docs", "--url=http://x//y", "--mode", "${input:mode}"],
      "env": {"KEY": "${input:key}", "USER_NAME": "${env:WHO}"},
      "envFile": "${workspaceFolder}/.env",
      "cwd": "${workspaceFolder}",
    },
    "remote": {"url": "https://example.com/mcp", "headers": {"X-Key": "${input:key}"}},
  },
}
"""


def test_vs_codes_file(tmp_path: Path, monkeypatch: Any) -> None:
    """Comments and trailing commas, inputs that are asked for once, variables and their file."""
    monkeypatch.setenv("WHO", "bo")
    (tmp_path / ".env").write_text('# more\nexport LEVEL="high"\nKEY=old\nno line\n', "utf-8")
    asked: list[tuple[str, str]] = []

    def ask(name: str, about: str) -> str:
        asked.append((name, about))
        return {"key": "sk-1", "mode": "a"}[name]

    path = kept(tmp_path, VS_CODE)
    expected = {
        "files": Stdio(
            "npx", ("server", f"{tmp_path}/docs", "--url=http://x//y", "--mode", "a"),
            {"LEVEL": "high", "KEY": "sk-1", "USER_NAME": "bo"}, str(tmp_path),
        ),
        "remote": Http("https://example.com/mcp", {"X-Key": "sk-1"}),
    }  # fmt: skip
    assert transports(path, inputs=ask, workspace=tmp_path) == expected
    assert asked == [("mode", "mode"), ("key", "API key")]
    named = transports(path, inputs={"key": "sk-1", "mode": "a"}, workspace=tmp_path)
    assert named == expected
    with pytest.raises(
        ConfigError, match=r'`files` in the file is invalid: env: it needs an input: .*"key"'
    ):
        mcp_servers(path, workspace=tmp_path)


def test_vs_codes_settings() -> None:
    """With the servers below `mcp`."""
    inner = {"servers": {"a": {"command": "x"}}}
    assert transports({"mcp": inner, "editor.fontSize": 12}) == {"a": Stdio("x", (), {}, None)}


def test_cursors_file(monkeypatch: Any) -> None:
    """URLs without a type, and the editor's own variables."""
    monkeypatch.setenv("TOKEN", "sk-1")
    document = {"mcpServers": {
        "one": {"url": "https://example.com/mcp", "headers": {"A": "${env:TOKEN}"}},
        "two": {"url": "https://example.com/v1/sse"},
        "three": {"command": "${userHome}${/}bin${pathSeparator}serve"},
    }}  # fmt: skip
    assert transports(document) == {
        "one": Http("https://example.com/mcp", {"A": "sk-1"}),
        "two": Http("https://example.com/v1/sse", {}, is_sse=True),
        "three": Stdio(f"{Path.home()}/bin/serve", (), {}, None),
    }


def test_tools_are_prefixed_with_the_servers_name() -> None:
    """As a valid name; another prefix can be set for all."""
    document = {"mcpServers": {name: {"command": "x"} for name in ("files", "My Server!")}}
    first, second = mcp_servers(document)
    assert (first.prefix, second.name) == ("files", "My Server!")
    assert second.prefix.startswith("My_Server_")
    assert [each.prefix for each in mcp_servers(document, prefix="")] == ["", ""]


async def test_a_server_of_a_file_works() -> None:
    """From the file to the answer."""
    document = {"mcpServers": {"small": {"command": sys.executable, "args": ["-I", SMALL],
                                         "env": {"GREETING": "hi"}}}}  # fmt: skip
    (server,) = mcp_servers(document)
    async with server:
        assert "small_echo" in [each.name for each in await server.tools()]
        assert '"GREETING": "hi"' in (await server.call_tool("environment")).text


BROKEN: dict[str, tuple[Any, str]] = {
    "nothing": ({}, '"mcpServers"'),
    "a list": ({"mcpServers": []}, '"mcpServers"'),
    "a text for a server": ({"mcpServers": {"a": "x"}}, "an object under its name"),
    "no command": ({"mcpServers": {"a": {"type": "stdio"}}}, "command is missing"),
    "no address": ({"mcpServers": {"a": {}}}, "url is missing"),
    "a strange type": ({"mcpServers": {"a": {"type": "ws", "url": "x"}}}, "stdio, http or sse"),
    "arguments that are none": (
        {"mcpServers": {"a": {"command": "x", "args": "-y"}}}, "args must be a list"),
    "arguments that are numbers": (
        {"mcpServers": {"a": {"command": "x", "args": [1]}}}, "args must contain strings"),
    "a variable that is not there": (
        {"mcpServers": {"a": {"command": "${NOT_THERE}"}}}, "variable NOT_THERE is not set"),
    "a variable of another kind": (
        {"mcpServers": {"a": {"command": "${command:pick}"}}}, "it uses an unsupported"),
    "an address that is none": (
        {"mcpServers": {"a": {"url": "sk-1"}}}, "`a`: the URL of an MCP server must"),
    "too many": (
        {"mcpServers": {str(at): {"command": "x"} for at in range(101)}}, "101 servers"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_problems_are_reported(kind: str) -> None:
    """With the server's name, and without values, which may be keys."""
    document, problem = BROKEN[kind]
    with pytest.raises(ConfigError, match=problem) as caught:
        mcp_servers(document)
    assert "sk-1" not in str(caught.value)


def test_files_that_can_not_be_read(tmp_path: Path) -> None:
    """The error has the name and the reason."""
    with pytest.raises(
        ConfigError, match=r"can't read the MCP servers file `none.json`: No such file"
    ):
        mcp_servers(tmp_path / "none.json")
    with pytest.raises(ConfigError, match=r"`mcp.json` is invalid"):
        mcp_servers(kept(tmp_path, '{"mcpServers": '))
    with pytest.raises(ConfigError, match="it is not a JSON object"):
        mcp_servers(kept(tmp_path, "[]"))
    with pytest.raises(ConfigError, match="it is too large"):
        mcp_servers(kept(tmp_path, " " * 1_000_001))


values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
fields = st.sampled_from(["command", "args", "env", "url", "headers", "type", "cwd", "envFile",
                          "disabled", "x"])  # fmt: skip


@given(st.dictionaries(st.text(max_size=10), st.dictionaries(fields, values) | values), values)
def test_any_file_is_read_or_rejected(servers: Any, inputs: Any) -> None:
    """With our own error; nothing is started."""
    try:
        found = mcp_servers({"mcpServers": servers, "inputs": inputs})
    except DragomanError:
        return
    assert all(isinstance(each, MCPServer) for each in found)


def test_nothing_is_started_by_reading() -> None:
    """Neither programs nor an event loop."""
    mcp_servers({"mcpServers": {"a": {"command": "no-such-command"}}})
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()
