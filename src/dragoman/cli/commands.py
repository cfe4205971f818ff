"""The commands there are; the module of each imports what it needs when it is run."""

from __future__ import annotations

import click

from dragoman import __version__
from dragoman.cli.ask import ask
from dragoman.cli.chat import chat
from dragoman.cli.check import check
from dragoman.cli.completion import completion
from dragoman.cli.convert import convert
from dragoman.cli.dialects import dialects
from dragoman.cli.doctor import doctor
from dragoman.cli.exit_codes import EXIT_CODES, clean_ending
from dragoman.cli.history import history
from dragoman.cli.mcp import mcp
from dragoman.cli.models import models
from dragoman.cli.providers import providers
from dragoman.cli.schema import schema
from dragoman.cli.show import show
from dragoman.cli.templates import templates


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_CODES)
@click.version_option(__version__, message="dragoman %(version)s")
def dragoman() -> None:
    """Conversations with language models that belong to their owner."""


@dragoman.command(epilog=EXIT_CODES, short_help="Talk with a small model on this machine.")
@click.option("--watch", is_flag=True, help="Watch a short conversation, on a terminal too.")
def tour(*, watch: bool) -> None:
    """Talk with a small model on this machine; it is fetched if it is not here.

    Without a terminal, a short conversation with it is held and printed: with a tool, and with
    another dialect for each turn.
    """
    with clean_ending():
        from dragoman.cli.tour import take

        take(watches=watch)


for command in (
    ask, chat, check, completion, convert, dialects, doctor, history, mcp, models, providers,
    schema, show, templates,
):  # fmt: skip
    dragoman.add_command(command)
