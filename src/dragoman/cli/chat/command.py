"""`dragoman chat`: what can be said on the command line."""

from __future__ import annotations

import sys
from typing import Any

import click

from dragoman.cli.endings import EXIT_CODES, clean_ending
from dragoman.cli.history.stores import store_option


@click.command(epilog=EXIT_CODES)
@click.argument("model", required=False)
@click.option("--system", metavar="TEXT", help="Instructions for the model.")
@click.option("--tools", multiple=True, metavar="FILE.py|MODULE:NAME",
              help="Functions for the model to call; `builtin`: now, calculate.")  # fmt: skip
@click.option("--no-tools", is_flag=True, help="None; local: and echo: have `builtin` else.")
@click.option("--continue", "is_continued", is_flag=True, help="Go on with the latest chat.")
@click.option("--session", metavar="NAME", help="The chat of that name, new or not.")
@store_option
@click.option("--no-history", is_flag=True, help="Keep nothing.")
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Of an answer, at most.")
@click.option("--thinking", metavar="EFFORT",
              help="none, low, medium, high, … or a number of tokens.")  # fmt: skip
@click.option("--usage", is_flag=True, help="Say after each answer what it took.")
@click.option("--dialect", metavar="DIALECT", help="Which of the provider's dialects to speak.")
@click.option(
    "--base-url", metavar="URL", help="Where the provider is, if not where it usually is."
)
@click.option("--yes", is_flag=True, help="Fetch a local model that is not here, without asking.")
def chat(**options: Any) -> None:
    """Talk with a MODEL.

    A MODEL is provider:model, local:smollm2 or local:FILE.gguf (on this machine, without a key),
    or echo: (repeats what it is told). Without one it is $DRAGOMAN_MODEL, that of the chat that is
    continued, or you are asked. /help lists what can be done on the way.

    Chats are kept, and `dragoman history` shows them. In a pipe each line of standard input is
    something said, and the answers go to standard output, as plain text.
    """
    with clean_ending():
        from dragoman.cli.chat.chatting import Options, hold

        hold(Options(**options), is_terminal=sys.stdin.isatty() and sys.stdout.isatty())
