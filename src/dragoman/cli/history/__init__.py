"""`dragoman history`: the conversations in a store."""

from __future__ import annotations

import click

from dragoman.cli.endings import EXIT_CODES
from dragoman.cli.history.changing import delete, forget, fork
from dragoman.cli.history.health import repair, verify
from dragoman.cli.history.looking import list_sessions, search, show, stats
from dragoman.cli.history.moving import export, import_sessions


@click.group(epilog=EXIT_CODES)
def history() -> None:
    """Look after stored conversations.

    A SESSION is named by the beginning of its key, as `list` shows it. The store is a URL:
    sqlite:///file, postgresql://…, redis://…, file:///directory; by default $DRAGOMAN_HISTORY, or
    a file in your data directory. Tables on a terminal, JSON in a pipe.
    """


for command in (
    list_sessions, show, search, stats, export, import_sessions, fork, delete, forget, verify,
    repair,
):  # fmt: skip
    history.add_command(command)
