"""`dragoman ask`: a question to a model, and its answer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.endings import EXIT_CODES, INPUT, USAGE, Ending, clean_ending, complain
from dragoman.cli.places import OwnModel, expect_llama, expect_ready, own_model

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
              help="Have the answer as JSON of this JSON Schema.")  # fmt: skip
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
        settings = _settings(model, given)  # what is wrong with the model is said before all else
        request, files = request_of(words, given)
        opened = _opened(model, given, settings)
        _tell_losses(opened, request, files, given.dialect)
        run(answer(opened, request, Printer(given, sys.stdout)), opened.name)


def _settings(model: str, given: Any) -> dict[str, Any]:
    """What the model is opened with; ends the command where it can't be."""
    own = own_model(model)
    named = {"base_url": given.base_url, "dialect": given.dialect}
    settings = {name: value for name, value in named.items() if value is not None}
    if own is None:
        _expect_model(model, given.base_url)
        return settings | _timeouts(given.timeout)
    wrong = [name for name in settings if own.kind != "local" or name == "base_url"]
    if wrong:
        option = wrong[0].replace("_", "-")
        raise Ending(USAGE, f"{own.kind}: runs here, and takes no --{option}")
    return settings | _timeouts(given.timeout) if own.kind == "local" else settings


def _timeouts(seconds: float | None) -> dict[str, Any]:
    from dragoman.transport.protocol import Timeouts

    return {} if seconds is None else {"timeouts": Timeouts(total=seconds)}


def _expect_model(model: str, base_url: str | None) -> None:
    """End the command where a provider or its model is not known."""
    from dragoman.providers.registry import provider
    from dragoman.transport.names import parse_model

    name = parse_model(model)
    place = provider(name.provider)
    expect_ready(place, base_url)
    if name.chat is None and place.auth is not None and base_url is None:
        listing = f"`dragoman models {place.name}` lists them"
        raise Ending(
            USAGE, f"which model of {place.name}? Name it as {place.name}:MODEL; {listing}"
        )


def _opened(model: str, given: Any, settings: dict[str, Any]) -> Model:
    from dragoman.transport.model import open_model

    own = own_model(model)
    if own is not None and own.kind == "local":
        _ensure_here(own, is_allowed=given.yes)
    return open_model(model, **settings)


def _ensure_here(own: OwnModel, *, is_allowed: bool) -> None:
    from dragoman.cli.fetching import ensure_fetched
    from dragoman.transport.local.files import found

    source = found(own.rest)
    expect_llama()
    ensure_fetched(source, is_allowed=is_allowed)


# --- what the model can't be told


def _tell_losses(model: Model, request: Request, files: list[str], dialect: str | None) -> None:
    """Say what can't be told there; an attachment that can't be ends the command."""
    from dragoman.cli.asking import attachment_of
    from dragoman.transport.client import Client
    from dragoman.transport.deployments import Deployment

    if not isinstance(model, Client):
        return
    name = model.name.partition(":")[2] or None
    spoken = Deployment(model.provider, dialect_name=dialect or model.provider.dialect_of(name))
    for loss in spoken.dialect.encode_request(request, spoken.target(name)).losses:
        place = attachment_of(loss.path, files)
        if place is not None:
            raise Ending(USAGE, f"{place}: can't be sent to {model.name} ({loss.reason})")
        complain(f"{loss.path}: {loss.reason}")
