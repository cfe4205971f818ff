"""`dragoman history`: the conversations in a store."""

from __future__ import annotations

import click

from dragoman.cli.history.changing import branches, delete, forget, fork, switch
from dragoman.cli.history.health import repair, verify
from dragoman.cli.history.looking import list_sessions, search, show, stats
from dragoman.cli.history.moving import export, import_sessions

_EXIT_CODES = """\b
Exit codes:
  0   done
  1   something is wrong with the store (verify, repair)
  2   the command line is wrong, or names what is not there
  3   a file, or the store, holds what can't be read; an import meets what is there
  4   a file or a store can't be reached, read or written
  70  a fault of dragoman's own
  130, 141, 143  interrupted, the reader went away, terminated"""


@click.group(epilog=_EXIT_CODES)
def history() -> None:
    """Look after stored conversations.

    A SESSION is named by the first digits of its digest, as `list` shows them. The store is a
    URL: sqlite:///file, sqlite:////absolute/file, postgresql://…, redis://…, file:///directory;
    by default $DRAGOMAN_HISTORY, or a file in your data directory. Tables on a terminal, JSON in
    a pipe.
    """


for command in (
    list_sessions, show, search, stats, export, import_sessions, branches, fork, switch, delete,
    forget, verify, repair,
):  # fmt: skip
    history.add_command(command)
