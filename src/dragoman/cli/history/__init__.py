"""`dragoman history`: the conversations in a store."""

from __future__ import annotations

import click

from dragoman.cli.history.changing import branches, delete, forget, fork, switch
from dragoman.cli.history.health import repair, verify
from dragoman.cli.history.listing import list_sessions
from dragoman.cli.history.looking import search, show, stats
from dragoman.cli.history.moving import export, import_sessions
from dragoman.cli.history.sealing import keygen, rotate

_EXIT_CODES = """\b
Exit codes:
  0   done
  1   something is wrong with the store (verify, repair, rotate)
  2   the command line is wrong, or names something that does not exist
  3   stored data or a file can't be read; an imported session exists already
  4   a file or a store can't be reached, read or written
  70  a fault of dragoman's own
  130, 141, 143  interrupted, output closed, terminated"""


@click.group(epilog=_EXIT_CODES)
def history() -> None:
    """Manage stored conversations.

    A SESSION is a name as `chat` and `list` show it (2026-11-16-101500-3f2a, chat/first), a digest,
    or the beginning of one if it is unique.

    The store is a URL: sqlite:///file, sqlite:////absolute/file, postgresql://…, redis://…,
    file:///directory; by default $DRAGOMAN_HISTORY, or a file in your data directory. For an
    encrypted one, give its keys: --key-file ID=FILE, or $DRAGOMAN_HISTORY_KEYS. Tables on a
    terminal, JSON in a pipe.
    """


for command in (
    list_sessions, show, search, stats, export, import_sessions, branches, fork, switch, delete,
    forget, verify, repair, keygen, rotate,
):  # fmt: skip
    history.add_command(command)
