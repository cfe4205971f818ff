"""`dragoman ask`: a question to a model, and its answer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.exit_codes import EXIT_CODES, USAGE, Ending, clean_ending, complain
from dragoman.cli.history.stores import store_options
from dragoman.cli.mcp_tools import mcp_options
from dragoman.cli.model_opening import address_asked, opened, settings_of
from dragoman.cli.model_options import given_settings, given_template, model_options

if TYPE_CHECKING:
    from dragoman.cli.ask_options import Options
    from dragoman.model.requests import Request
    from dragoman.transport.model import Model

_SECONDS = click.FloatRange(0, min_open=True)


@click.command(epilog=EXIT_CODES)
@click.argument("words", nargs=-1, metavar="MODEL [PROMPT]...")
@model_options
@mcp_options
@click.option("-a", "--attach", multiple=True, metavar="FILE",
              help="Send a file along: pictures, sound, PDF, text. Repeatable.")  # fmt: skip
@click.option("--schema", metavar="FILE|FIELDS",
              help="Answer in JSON, checked against a JSON Schema: a file, the schema itself, or"
                   " fields such as 'name, age int'.")  # fmt: skip
@click.option("-x", "--extract", is_flag=True, help="Print only the first code block.")
@click.option("-c", "--continue", "is_continued", is_flag=True, help="Continue the latest chat.")
@click.option("--session", metavar="NAME",
              help="Keep question and answer in the chat of that name.")  # fmt: skip
@store_options
@click.option("--stream/--no-stream", default=None,
              help="Print the answer as it comes; on a terminal that is the default.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the whole response as JSON.")
@click.option("--timeout", type=_SECONDS, metavar="SECONDS",
              help="Time limit for the whole command, retries included.")  # fmt: skip
@click.option("--save", "saved_as", metavar="NAME",
              help="Save all this as a template, and ask nothing.")  # fmt: skip
def ask(words: tuple[str, ...], **options: Any) -> None:
    """Ask a MODEL something, once.

    A MODEL is provider:model, local:smollm2 or local:FILE.gguf (on this machine, without a key),
    or echo: (repeats what it is told). It is the first argument, unless -m, a template or
    $DRAGOMAN_MODEL names one. The prompt is what the arguments say, what is piped in, or both:
    then what is piped in comes first. A single - reads standard input whatever it is.

    The answer goes to standard output and nothing else does: thinking (where standard error is a
    terminal), usage and errors go to standard error. Keys come from the environment; `dragoman
    providers` names the variables.
    """
    with clean_ending():
        from dragoman.cli.ask_options import Options, model_and_words, names_model

        is_saved = options["saved_as"] is not None
        has_model = is_saved or bool(words and names_model(words[0]))
        template = given_template(options, has_model=has_model)
        is_theirs = template is not None and not has_model and not options["named_model"]
        if template is not None and is_theirs and options["base_url"] is None:
            options["base_url"] = template.base_url
        settings = given_settings(options, template)
        named = options.pop("named_model")
        given = Options(**options, settings=settings, template=template)
        model, said = model_and_words(words, named, template, _kept_model(given))
        if given.saved_as is not None:
            _save(given, model, said)
        else:
            _ask(model, said, given)


def _ask(name: str | None, words: tuple[str, ...], given: Options) -> None:
    from dragoman.cli.answer_output import Printer, answer
    from dragoman.cli.ask_options import request_of
    from dragoman.cli.provider_errors import run

    if name is None:
        raise Ending(USAGE, "which model? Name it first, as in `dragoman ask openai:gpt-5 …`, with"
                     " -m, or in $DRAGOMAN_MODEL")  # fmt: skip
    # What is wrong with the model is said before all else.
    settings = settings_of(
        name, base_url=given.base_url, dialect=given.dialect, timeout=given.timeout
    )
    request, files = request_of(words, given)
    there = opened(name, settings, may_fetch=given.yes)
    _tell_losses(there, request, files)
    printer = Printer(given, sys.stdout)
    if given.is_agent:
        from dragoman.cli.ask_agent import answer_with_tools

        work = answer_with_tools(there, request, printer, given)
    else:
        work = answer(there, request, printer)
    run(work, there.name, address_asked(there, given.base_url))


def _kept_model(given: Options) -> str | None:
    """The model that spoke last in the chat that is continued."""
    if not given.is_kept:
        return None
    from dragoman.cli.ask_agent import kept_model
    from dragoman.cli.provider_errors import run

    return run(kept_model(given), "the store")


def _save(given: Options, model: str | None, words: tuple[str, ...]) -> None:
    from dragoman.cli.prompt_template import template_text
    from dragoman.cli.templates import write_template

    assert given.saved_as is not None  # noqa: S101 - asked for
    write_template(given.saved_as, template_text(given, model, " ".join(words)))
    click.echo(f"saved; `dragoman ask -t {given.saved_as}` uses it", err=True)


# --- what the model can't be told


def _tell_losses(model: Model, request: Request, files: list[str]) -> None:
    """Say what can't be told there; an attachment that can't be ends the command."""
    from dragoman.cli.ask_options import attachment_of
    from dragoman.transport.client import Client

    if not isinstance(model, Client):
        return
    for loss in model.encode(request).losses:
        place = attachment_of(loss.path, files)
        if place is not None:
            raise Ending(USAGE, f"{place}: can't be sent to {model.name} ({loss.reason})")
        complain(f"{loss.path}: {loss.reason}")
