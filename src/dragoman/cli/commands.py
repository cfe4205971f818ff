"""The command group; each command's module imports what it needs when it runs."""

from __future__ import annotations

import re
import sys
from typing import Any

import click

from dragoman import __version__
from dragoman.cli.aliases import aliases
from dragoman.cli.ask import ask
from dragoman.cli.chat import chat
from dragoman.cli.check import check
from dragoman.cli.completion import completion
from dragoman.cli.convert import convert
from dragoman.cli.dialects import dialects
from dragoman.cli.doctor import doctor
from dragoman.cli.exit_codes import EXIT_CODES, INTERRUPTED, clean_ending, complain
from dragoman.cli.history import history
from dragoman.cli.keys import keys
from dragoman.cli.mcp import mcp
from dragoman.cli.models import models
from dragoman.cli.providers import providers
from dragoman.cli.schema import schema
from dragoman.cli.serve import serve
from dragoman.cli.show import show
from dragoman.cli.templates import templates

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


class _Commands(click.Group):
    """The commands; arguments that name no command go to `ask`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `ask` before arguments that can't be a command: a sentence, a model, an option.

        A single word may be a mistyped command, and is never sent to a model.
        """
        options = {name for each in self.get_params(ctx) for name in each.opts}
        if args and args[0] not in {*options, "-", "--", ""} and not _WORD.fullmatch(args[0]):
            args = ["ask", *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; an interrupt before it starts gives the same exit code as a later one."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            complain("interrupted")
            sys.exit(INTERRUPTED)


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_CODES
)
@click.version_option(__version__, message="dragoman %(version)s")
def dragoman() -> None:
    """Conversations with language models that belong to their owner.

    A question needs no command: `dragoman 'Where is the Old Bridge?'` runs `dragoman ask …`.
    """


@dragoman.command(epilog=EXIT_CODES, short_help="See a small local model and the gateway at work.")
@click.option("--watch", is_flag=True, help="End after the demo, even on a terminal.")
def tour(*, watch: bool) -> None:
    """Run a short conversation with a small local model, then serve it through the gateway.

    The model is downloaded if it is missing. The conversation calls a tool, and uses a different
    dialect for each turn. On a terminal, the gateway then runs until Ctrl-C; otherwise it answers
    one request of each API.
    """
    with clean_ending():
        from dragoman.cli.tour import take

        take(watches=watch)


for command in (
    aliases, ask, chat, check, completion, convert, dialects, doctor, history, keys, mcp,
    models, providers, schema, serve, show, templates,
):  # fmt: skip
    dragoman.add_command(command)
