"""`dragoman history`: manage stored conversations."""

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
  0   success
  1   problems in the store (verify, repair, rotate)
  2   wrong usage, or the named session, branch or message doesn't exist
  3   invalid data in the store or a file; an imported session already exists
  4   file or store can't be reached, read or written
  70  internal error (a bug in dragoman)
  129, 130, 141, 143  terminal closed, interrupted, output closed, terminated"""


@click.group(epilog=_EXIT_CODES)
def history() -> None:
    """Manage stored conversations.

    A SESSION is a name as shown by `chat` and `list` (2026-11-16-101500-3f2a, chat/first), a
    digest, or a unique prefix of either.

    The store is a URL: sqlite:///file, sqlite:////absolute/file, postgresql://…, mariadb://…,
    redis://…, file:///directory. Default: $DRAGOMAN_HISTORY, or a file in your data directory. An
    encrypted store needs its keys: --key-file ID=FILE, or $DRAGOMAN_HISTORY_KEYS. Output is a table
    on a terminal, JSON in a pipe.
    """


for command in (
    list_sessions, show, search, stats, export, import_sessions, branches, fork, switch, delete,
    forget, verify, repair, keygen, rotate,
):  # fmt: skip
    history.add_command(command)
