"""`--mcp` and `--mcp-config`: MCP servers for `ask` and `chat`."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from dragoman.cli.exit_codes import USAGE, Ending
from dragoman.errors import ConfigError, DragomanError

if TYPE_CHECKING:
    from dragoman.mcp import MCPServer

_OPTIONS = (
    click.option("--mcp", multiple=True, metavar="COMMAND|URL",
                 help="An MCP server whose tools the model may call. Repeatable."),
    click.option("--mcp-config", multiple=True, metavar="FILE",
                 help="JSON file of MCP servers, as for Claude, VS Code or Cursor. Repeatable."),
)  # fmt: skip

# Programs that run others: a server is named after what they run.
_RUNNERS = frozenset({"npx", "bunx", "uvx", "uv", "pipx", "run", "node", "deno", "bun", "docker"})
_AFFIXES = re.compile(r"^(mcp[-_])?(server[-_])?|([-_]mcp)?([-_]server)?$")
_MAX_NAME = 32


def mcp_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for MCP servers."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def servers_named(commands: Sequence[str], files: Sequence[str]) -> list[MCPServer]:
    """The servers given as commands and in files; every call to them needs approval."""
    if not commands and not files:
        return []
    try:
        from dragoman.mcp import mcp_servers

        found = [each for file in files for each in mcp_servers(file, inputs=_asked)]
        is_alone = len(commands) == 1 and not files
        return [*found, *(_server(each, is_alone=is_alone) for each in commands)]
    except DragomanError as error:
        problem = str(error)
    raise Ending(USAGE, problem)


def _server(given: str, *, is_alone: bool) -> MCPServer:
    from dragoman.mcp import MCPServer

    options: dict[str, Any] = {}
    if given.startswith(("http://", "https://")):
        parts = urlsplit(given)
        options["prefix"] = "" if is_alone else _plain((parts.hostname or "").split(".")[0])
        is_sse = parts.path.rstrip("/").endswith("/sse")
        return (MCPServer.sse if is_sse else MCPServer.http)(given, **options)
    try:
        command, *args = shlex.split(given)
    except ValueError:
        msg = "--mcp takes a quoted command with its arguments, or a URL"
        raise ConfigError(msg) from None
    name = _name(command, args)
    return MCPServer.stdio(command, *args, name=name, prefix="" if is_alone else name)


def _name(command: str, args: Sequence[str]) -> str:
    """The name of a server: `filesystem` for `npx -y @modelcontextprotocol/server-filesystem`.

    >>> _name("uvx", ["mcp-server-fetch"]), _name("node", ["/srv/weather_server.py"])
    ('fetch', 'weather')
    """
    words = [command, *(each for each in args if not each.startswith("-"))]
    is_python = re.compile(r"python[0-9.]*").fullmatch
    own = (PurePath(each).name for each in words)
    chosen = next((each for each in own if each not in _RUNNERS and not is_python(each)), command)
    stem = chosen.partition("@")[0].rsplit(".", 1)[0]
    return _plain(_AFFIXES.sub("", stem) or stem)


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:_MAX_NAME] or "mcp"


def _asked(name: str, about: str) -> str:
    """Prompt for an input of a configuration file, without echo, since it is mostly a key."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        msg = f"it needs the input {_plain(name)}, and there is no terminal to ask on"
        raise ConfigError(msg)
    from dragoman.cli.screen import harmless_line

    typed: str = click.prompt(harmless_line(about), hide_input=True, err=True)
    return typed


async def tools_of(servers: Sequence[MCPServer]) -> list[Any]:
    """All tools of the servers."""
    return [each for server in servers for each in await server.tools()]


async def close(servers: Sequence[MCPServer]) -> None:
    """Close the connections."""
    for each in servers:
        await each.close()
