"""`dragoman ask`: ask a model a question."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.exit_codes import EXIT_CODES, USAGE, Ending, clean_ending, complain
from dragoman.cli.history.stores import store_options
from dragoman.cli.mcp_tools import mcp_options
from dragoman.cli.model_opening import address_asked, model_meant, opened, settings_of
from dragoman.cli.model_options import given_settings, given_template, model_options

if TYPE_CHECKING:
    from dragoman.cli.ask_options import Options
    from dragoman.cli.chat.chat_state import ChatState
    from dragoman.model.requests import Request
    from dragoman.transport.model import Model

_SECONDS = click.FloatRange(0, min_open=True)


@click.command(epilog=EXIT_CODES)
@click.argument("words", nargs=-1, metavar="MODEL [PROMPT]...")
@model_options
@mcp_options
@click.option("-a", "--attach", multiple=True, metavar="FILE|URL",
              help="Attach a file: image, audio, video, PDF or text; - is standard input."
                   " Repeatable.")  # fmt: skip
@click.option("--schema", metavar="FILE|FIELDS",
              help="Answer in JSON, checked against a JSON Schema: a file, the schema itself, or"
                   " fields such as 'name, age int'.")  # fmt: skip
@click.option("--schema-multi", metavar="FILE|FIELDS",
              help="Answer in a JSON list: an object with `items` of this schema.")  # fmt: skip
@click.option("-x", "--extract", is_flag=True, help="Print only the answer's first code block.")
@click.option("-c", "--continue", "is_continued", is_flag=True, help="Continue the latest chat.")
@click.option(
    "--session", metavar="NAME",
    help="Continue the chat with this name, or start it. AGENT/CHAT or a digest continues any"
    " stored session.",
)  # fmt: skip
@store_options
@click.option("--no-history", is_flag=True, help="Don't store the question and the answer.")
@click.option("--stream/--no-stream", default=None,
              help="Print the answer as it is generated. Default: only on a terminal.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the whole response as JSON.")
@click.option("--timeout", type=_SECONDS, metavar="SECONDS",
              help="Time limit for the whole command, retries included.")  # fmt: skip
@click.option("--save", "saved_as", metavar="NAME",
              help="Save the prompt and options as a template, and send nothing.")  # fmt: skip
def ask(words: tuple[str, ...], **options: Any) -> None:
    """Ask a MODEL a question.

    A MODEL is provider:model, an alias, local:smollm2 or local:FILE.gguf (runs on this machine,
    without a key), or echo: (repeats the prompt). It is the first argument, unless -m, a template,
    $DRAGOMAN_MODEL or the alias `default` names one. The prompt is the remaining arguments,
    standard input, or both, standard input first. A single - reads standard input even from a
    terminal.

    Only the answer is written to standard output. Thinking (if standard error is a terminal),
    usage and errors go to standard error. API keys are read from environment variables, which
    `dragoman providers` lists. The question and the answer are stored: `dragoman history` shows
    them, and -c continues the conversation.
    """
    with clean_ending():
        from dragoman.cli.ask_options import Options, model_and_words, names_model, schema_given

        schema_given(options)
        is_saved = options["saved_as"] is not None
        is_named = is_saved or options["named_model"] is not None
        has_model = is_named or bool(words and names_model(words[0]))
        template = given_template(options, has_model=has_model)
        is_theirs = template is not None and not has_model
        if template is not None and is_theirs and options["base_url"] is None:
            options["base_url"] = template.base_url
        settings = given_settings(options, template)
        named = options.pop("named_model")
        given = Options(**options, settings=settings, template=template)
        if given.is_in_chat and given.no_history:
            other = "--continue" if given.is_continued else "--session"
            raise Ending(USAGE, f"{other} can't be combined with --no-history")
        state = _kept_state(given)
        model, said = model_and_words(words, named, template, state.model)
        if given.saved_as is not None:
            _save(given, model, said)
        elif model is None:
            _ask_chosen(said, given)
        else:
            is_same = named is None and model == state.model
            _ask(model, said, given.with_state(state, is_same_model=is_same))


def _ask_chosen(words: tuple[str, ...], given: Options) -> None:
    """Ask a model that the user picks now: none was named."""
    from dragoman.cli.chat.choosing import chosen_model

    is_terminal = bool(words or given.attach) and sys.stdin.isatty() and sys.stderr.isatty()
    chosen = chosen_model(None, None, is_terminal=is_terminal, command="ask")
    _ask(chosen.name, words, replace(given, yes=given.yes or chosen.is_agreed))


def _ask(named: str, words: tuple[str, ...], given: Options) -> None:
    from dragoman.cli.answer_output import Printer
    from dragoman.cli.ask_agent import answer_alone, answer_with_tools
    from dragoman.cli.ask_options import request_of
    from dragoman.cli.provider_errors import run
    from dragoman.cli.small_model import SETTINGS, is_small

    # Problems with the model are reported before anything else.
    meant = model_meant(named)
    name, base_url = meant.name, given.base_url or meant.base_url
    settings = settings_of(name, base_url=base_url, dialect=given.dialect, timeout=given.timeout)
    state = given.state(named)
    if is_small(name):
        given = replace(given, settings={**SETTINGS, **given.settings})
    request, files = request_of(words, given)
    there = opened(name, settings, may_fetch=given.yes)
    _tell_losses(there, request, files)
    printer = Printer(given, sys.stdout)
    answer = answer_with_tools if given.is_agent else answer_alone
    work = answer(there, request, printer, given, state)
    run(work, there.name, address_asked(there, base_url))


def _kept_state(given: Options) -> ChatState:
    """The settings stored with the chat that is continued."""
    from dragoman.cli.ask_agent import kept_state
    from dragoman.cli.chat.chat_state import ChatState
    from dragoman.cli.provider_errors import run

    return run(kept_state(given), "the store") if given.is_in_chat else ChatState()


def _save(given: Options, model: str | None, words: tuple[str, ...]) -> None:
    from dragoman.agent.prompt_templates import write_template
    from dragoman.cli.prompt_template import command_text

    assert given.saved_as is not None  # noqa: S101 - asked for
    write_template(given.saved_as, command_text(given, model, " ".join(words)))
    click.echo(f"saved; use it with `dragoman ask -t {given.saved_as}`", err=True)


# --- unsupported content


def _tell_losses(model: Model, request: Request, files: list[str]) -> None:
    """Warn about what the model doesn't support; an unsupported attachment exits with an error."""
    from dragoman.cli.ask_options import attachment_of
    from dragoman.transport.client import Client

    if not isinstance(model, Client):
        return
    for loss in model.encode(request).losses:
        place = attachment_of(loss.path, files)
        if place is not None:
            raise Ending(USAGE, f"{place}: can't be sent to {model.name} ({loss.reason})")
        complain(f"{loss.path}: {loss.reason}")
