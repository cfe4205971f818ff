"""`dragoman mcp`: serve stored conversations to assistants over MCP."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.exit_codes import USAGE, Ending, complain
from dragoman.cli.history.stores import (
    Place,
    filter_of,
    filter_options,
    store_options,
    with_store,
)
from dragoman.cli.screen import harmless

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from dragoman.history.storage.protocol import Storage

_EXIT_CODES = """\b
Exit codes:
  0   the client closed standard input
  2   wrong usage, or a named session doesn't exist
  3   stored data can't be read
  4   store can't be reached, or address can't be used
  70  internal error (a bug in dragoman)
  130, 143  interrupted, terminated"""


@click.command(epilog=_EXIT_CODES, short_help="Serve stored conversations to assistants (MCP).")
@click.option("--session", "sessions", multiple=True, metavar="NAME",
              help="Serve only this session: a name (chat or agent/chat), an id, or a"
              " pattern with * and ?, such as 'support/*'. Repeatable.")  # fmt: skip
@filter_options
@click.option("--write", is_flag=True,
              help="Also offer tools that add messages and fork sessions.")  # fmt: skip
@click.option("--http", "address", metavar="HOST:PORT",
              help="Serve over HTTP instead of standard input and output.")  # fmt: skip
@store_options
def mcp(
    sessions: tuple[str, ...], store: Place, address: str | None, *, write: bool,
    **names: str | None,
) -> None:  # fmt: skip
    """Serve stored conversations to assistants (Model Context Protocol).

    An assistant that starts this command can list, search and read your conversations, translate
    requests between providers and check them. It can't change anything without --write, and it
    sees all sessions of the store unless you select some.

    With --http, clients connect to http://HOST:PORT/mcp. On this machine (127.0.0.1) they need no
    token; on any other address they must send the bearer token set in $DRAGOMAN_MCP_TOKEN.

    docs/guides/mcp-server.md shows how to add it to Claude Desktop, Claude Code, VS Code and
    Cursor.
    """

    async def work(storage: Storage) -> None:
        _expect_sdk()
        from dragoman.mcp.serving.served_sessions import scope_of
        from dragoman.mcp.serving.server import server_of

        scope = await scope_of(storage, sessions, filter_of(names))
        server = server_of(storage, scope, writes=write)
        with _discreet_logs():
            if address is None:
                await _over_stdio(server, storage)
            else:
                await _over_http(server, address)

    with_store(store, work, makes=write)


def _expect_sdk() -> None:
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise Ending(USAGE, "dragoman mcp needs the mcp extra: pip install 'dragoman[mcp]'")


async def _over_stdio(server: Server[Any], storage: Storage) -> None:
    from dragoman.mcp.serving.stdio import serve_stdio

    number = await serve_stdio(server)
    if number is None:
        return
    await storage.close()
    complain("interrupted" if number == 2 else "terminated")  # noqa: PLR2004 - SIGINT
    sys.stderr.flush()
    os._exit(128 + number)  # a thread still waits for input, and would keep the process alive


async def _over_http(server: Server[Any], address: str) -> None:
    from dragoman.mcp.serving.http import (
        TOKEN,
        Place,
        app_of,
        checked_token,
        listening_socket,
        serve_http,
    )

    place = Place.parse(address)
    token = checked_token(place, os.environ.get(TOKEN) or None)
    listening, place = listening_socket(place)
    with listening:
        if not place.is_loopback:
            complain("warning: HTTP is not encrypted; put a TLS proxy in front of it")
        complain(f"serving {place.url}{' with a token' if token else ''}; press Ctrl-C to stop")
        await serve_http(app_of(server, place, token), listening, server)


class _Discreet(logging.Formatter):
    """Logs only the location and type of SDK messages, which may quote requests."""

    def format(self, record: logging.LogRecord) -> str:
        if record.name.partition(".")[0] == "dragoman":  # our own messages quote nothing
            return f"dragoman: {harmless(record.getMessage())}"
        kind = f", {record.exc_info[0].__name__}" if record.exc_info and record.exc_info[0] else ""
        place = f"{record.filename}:{record.lineno}"
        return f"dragoman: {record.levelname.lower()} in {record.name} ({place}{kind})"


@contextmanager
def _discreet_logs() -> Generator[None]:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Discreet())
    root = logging.getLogger()
    before = list(root.handlers)
    root.handlers[:] = [handler]
    try:
        yield
    finally:
        root.handlers[:] = before
