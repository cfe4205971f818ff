"""`dragoman serve`: the gateway, for clients of every API."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.exit_codes import EXIT_CODES, USAGE, Ending, clean_ending, complain

if TYPE_CHECKING:
    from dragoman.gateway.config.settings import GatewayConfig

_MISSING = "the gateway needs the package uvicorn; install it with: pip install 'dragoman[gateway]'"


@click.command(epilog=EXIT_CODES, short_help="Serve models to clients of every API.")
@click.option(
    "--config",
    "-c",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The configuration; default: dragoman.toml, if there is one.",
)
@click.option("--host", metavar="ADDRESS", help="Where to listen; default: 127.0.0.1.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Default: 8421; 0: one that is free.",
)
@click.option(
    "--workers", type=click.IntRange(1, 256), metavar="N", help="Processes that serve; default: 1."
)
@click.option(
    "--log",
    type=click.Choice(["json", "text", "off"]),
    help="A line on standard output for each request; default: text.",
)
@click.option("--check", is_flag=True, help="Read the configuration, say what it does, and end.")
def serve(
    path: Path | None, host: str | None, port: int | None, workers: int | None, log: str | None,
    *, check: bool,
) -> None:  # fmt: skip
    """Serve the models of every provider whose key is set, and local ones, to clients of OpenAI's,
    Anthropic's, Gemini's and Ollama's APIs.

    Without a configuration file, models are asked for by their names or as PROVIDER:MODEL.
    """  # noqa: D205 - click joins the lines
    with clean_ending():
        try:
            from dragoman.gateway.launching import Launch
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in {"uvicorn", "httptools"}:
                raise
            raise Ending(USAGE, _MISSING) from None
        given = {"host": host, "port": port, "workers": workers, "log": log}
        changes = {name: value for name, value in given.items() if value is not None}
        launch = _launched(Launch, path, changes)
        if check:
            _explain(launch.config)
        else:
            sys.exit(launch.run(_say))


def _launched(make: Any, path: Path | None, changes: dict[str, Any]) -> Any:
    """The start of a server; each problem of its file is told on a line of its own."""
    from dragoman.gateway.config.problems import ConfigFileError

    try:
        return make(path, changes)
    except ConfigFileError as error:
        problems = error.problems
    for problem in problems:
        complain(str(problem))
    raise Ending(USAGE)


def _say(text: str) -> None:
    from dragoman.cli.screen import harmless

    click.echo(harmless(text), err=True)


def _explain(config: GatewayConfig) -> None:
    from dragoman.cli.screen import harmless
    from dragoman.gateway.middleware import load_middleware
    from dragoman.gateway.summary import summary

    load_middleware(config)  # raises where one can't be used
    for line in summary(config):
        click.echo(harmless(line))
