"""`dragoman ask`: a question to a model, and its answer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.endings import EXIT_CODES, INPUT, USAGE, Ending, clean_ending, complain
from dragoman.cli.opening import address_asked, opened, settings_of

if TYPE_CHECKING:
    from dragoman.model.requests import Request
    from dragoman.transport.model import Model

_SECONDS = click.FloatRange(0, min_open=True)


@click.command(epilog=EXIT_CODES)
@click.argument("model")
@click.argument("words", nargs=-1, metavar="[PROMPT]...")
@click.option("--system", metavar="TEXT", help="Instructions for the model.")
@click.option("--attach", type=INPUT, multiple=True, metavar="FILE",
              help="Send a file along: pictures, sound, PDF, text. Repeatable.")  # fmt: skip
@click.option("--schema", type=INPUT, metavar="FILE",
              help="Have the answer as JSON of this JSON Schema; it is checked.")  # fmt: skip
@click.option("--stream/--no-stream", default=None,
              help="Print the answer as it comes; on a terminal that is the default.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the whole response, canonically.")
@click.option("--usage", is_flag=True, help="Say what it cost, on standard error.")
@click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="No more than this.")
@click.option("--temperature", type=click.FloatRange(0), metavar="X", help="0: no chance in it.")
@click.option("--dialect", metavar="DIALECT", help="Which of the provider's dialects to speak.")
@click.option(
    "--base-url", metavar="URL", help="Where the provider is, if not where it usually is."
)
@click.option("--timeout", type=_SECONDS, metavar="SECONDS", help="For all of it together.")
@click.option("--yes", is_flag=True, help="Fetch a local model that is not here, without asking.")
def ask(model: str, words: tuple[str, ...], **options: Any) -> None:
    """Ask a MODEL something, once.

    A MODEL is provider:model, local:smollm2 or local:FILE.gguf (on this machine, without a key),
    or echo: (repeats what it is told). The prompt is what the arguments say, what is piped in, or
    both: then what is piped in comes first. A single - reads standard input whatever it is.

    The answer goes to standard output and nothing else does: thinking (where standard error is a
    terminal), usage and errors go to standard error. Keys come from the environment; `dragoman
    providers` names the variables.
    """
    with clean_ending():
        from dragoman.cli.answering import Printer, answer
        from dragoman.cli.asking import Options, request_of
        from dragoman.cli.refusals import run

        given = Options(**options)
        # What is wrong with the model is said before all else.
        settings = settings_of(
            model, base_url=given.base_url, dialect=given.dialect, timeout=given.timeout
        )
        request, files = request_of(words, given)
        there = opened(model, settings, may_fetch=given.yes)
        _tell_losses(there, request, files)
        address = address_asked(there, given.base_url)
        run(answer(there, request, Printer(given, sys.stdout)), there.name, address)


# --- what the model can't be told


def _tell_losses(model: Model, request: Request, files: list[str]) -> None:
    """Say what can't be told there; an attachment that can't be ends the command."""
    from dragoman.cli.asking import attachment_of
    from dragoman.transport.client import Client

    if not isinstance(model, Client):
        return
    for loss in model.encode(request).losses:
        place = attachment_of(loss.path, files)
        if place is not None:
            raise Ending(USAGE, f"{place}: can't be sent to {model.name} ({loss.reason})")
        complain(f"{loss.path}: {loss.reason}")
