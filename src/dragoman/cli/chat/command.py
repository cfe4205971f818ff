"""`dragoman chat`: the command and its options."""

from __future__ import annotations

import sys
from typing import Any

import click

from dragoman.cli.exit_codes import EXIT_CODES, USAGE, Ending, clean_ending
from dragoman.cli.history.stores import store_options
from dragoman.cli.mcp_tools import mcp_options
from dragoman.cli.model_options import given_settings, given_template, model_options


@click.command(epilog=EXIT_CODES)
@click.argument("model", required=False)
@model_options
@mcp_options
@click.option("--no-tools", is_flag=True,
              help="Use no tools, not even the built-in ones of local: and echo:.")  # fmt: skip
@click.option("-c", "--continue", "is_continued", is_flag=True, help="Continue the latest chat.")
@click.option(
    "--session", metavar="NAME",
    help="Continue the chat with this name, or start it. AGENT/CHAT or a digest continues any"
    " stored session.",
)  # fmt: skip
@store_options
@click.option("--no-history", is_flag=True, help="Don't store the chat or the input history.")
@click.option("--show-thinking", is_flag=True, help="Show thinking in full, not as one line.")
def chat(**options: Any) -> None:
    """Chat with a MODEL.

    A MODEL is provider:model, an alias, local:smollm2 or local:FILE.gguf (runs on this machine,
    without a key), or echo: (repeats your messages). If you name none, it is the model of the
    continued chat, $DRAGOMAN_MODEL or the alias `default`; otherwise you choose from the models
    that are available. Type /help in the chat for its commands.

    Chats are stored: `dragoman history` shows them, and --continue restores the model, system
    prompt, settings, tools and template. In a pipe, each line of standard input is a message, and
    the answers are printed as plain text.
    """
    with clean_ending():
        from dragoman.cli.chat.chatting import hold
        from dragoman.cli.chat.options import Options

        template = given_template(options, has_model=bool(options["model"]))
        settings = given_settings(options, template)
        named = options.pop("named_model")
        if named and options["model"]:
            raise Ending(USAGE, "the model is named twice: as an argument and with -m")
        options["model"] = options["model"] or named
        if template is not None:
            if not options["model"]:
                options["model"] = template.model
                options["base_url"] = options["base_url"] or template.base_url
            options["system"] = options["system"] or template.system
            options["tools"] = options["tools"] or (
                () if options["no_tools"] else template.tools
            )  # fmt: skip
        hold(
            Options(**options, settings=settings, template=template),
            is_terminal=sys.stdin.isatty() and sys.stdout.isatty(),
        )
