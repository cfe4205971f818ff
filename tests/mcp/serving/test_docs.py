"""The configurations in docs/guides/mcp-server.md can be pasted, and work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from dragoman import ChatHistory, SessionIdentity
from dragoman.cli.mcp import mcp
from dragoman.mcp.serving.http import PATH, TOKEN
from dragoman.mcp.serving.tools import TOOLS
from tests.mcp.serving.clients import call
from tests.mcp.serving.processes import over_stdio
from tests.test_docs import ROOT, blocks

PAGE = (ROOT / "docs" / "guides" / "mcp-server.md").read_text(encoding="utf-8")
FIELDS = {"command", "args", "env", "type", "url", "headers"}


def configurations() -> list[dict[str, Any]]:
    """The servers in the JSON blocks, whatever the client calls their list."""
    found: list[dict[str, Any]] = []
    for block in blocks(PAGE):
        if block.language == "json":
            whole = json.loads(block.code)
            assert list(whole) in (["mcpServers"], ["servers"])
            (servers,) = whole.values()
            found.append(servers["dragoman"])
    return found


def test_every_configuration_is_valid_for_clients() -> None:
    """A command with existing options, or a URL with a token."""
    found = configurations()
    assert len(found) == 4
    for server in found:
        assert set(server) <= FIELDS
        if "url" in server:
            assert server["url"].endswith(PATH)
            assert f"${{{TOKEN}}}" in server["headers"]["Authorization"]
            continue
        assert server["command"] == "dragoman"
        name, *options = server["args"]
        assert name == mcp.name
        with click.Context(mcp) as context:
            mcp.parse_args(context, list(options))  # raises for an unknown option


@pytest.mark.parametrize("server", [each for each in configurations() if "command" in each])
async def test_a_client_starts_the_documented_commands(
    server: dict[str, Any], tmp_path: Path
) -> None:
    """The official client, with the options of each; only the store's location differs."""
    url = f"sqlite:///{tmp_path}/chats.db"
    names = {"agent": "support", "chat": "1", "user": "ana"}
    with ChatHistory.open_sync(SessionIdentity(**names), url) as history:
        history.add("Hello")
    usual = over_stdio(*server["args"][1:])
    env = {**(usual.env or {}), **server.get("env", {}), "DRAGOMAN_HISTORY": url}
    started = StdioServerParameters(command=usual.command, args=usual.args, env=env)
    async with Client(stdio_client(started)) as client:
        (listed,) = (await call(client, "list_sessions"))["sessions"]
        assert listed["identity"] == names
        writes = "append_message" in {tool.name for tool in (await client.list_tools()).tools}
        assert writes is ("--write" in server["args"])


def test_the_page_names_every_tool() -> None:
    """And every prompt."""
    for tool in TOOLS:
        assert f"| `{tool.name}` |" in PAGE
