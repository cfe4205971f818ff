"""`dragoman serve`: run the gateway."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.exit_codes import EXIT_CODES, USAGE, Ending, clean_ending, complain

if TYPE_CHECKING:
    from dragoman.gateway.config.settings import GatewayConfig

_MISSING = "dragoman serve needs the gateway extra: pip install 'dragoman[gateway]'"


@click.command(epilog=EXIT_CODES, short_help="Run the gateway: any model for clients of any API.")
@click.option(
    "--config",
    "-c",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Configuration file.  [default: $DRAGOMAN_CONFIG, or dragoman.toml if it exists]",
)
@click.option("--host", metavar="ADDRESS", help="Address to listen on.  [default: 127.0.0.1]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Port to listen on; 0 picks a free one.  [default: 8421]",
)
@click.option(
    "--workers", type=click.IntRange(1, 256), metavar="N", help="Worker processes.  [default: 1]"
)
@click.option(
    "--log",
    type=click.Choice(["json", "text", "off"]),
    help="Format of the request log on standard output.  [default: text]",
)
@click.option("--check", is_flag=True, help="Check the configuration, print a summary, and exit.")
def serve(
    path: Path | None, host: str | None, port: int | None, workers: int | None, log: str | None,
    *, check: bool,
) -> None:  # fmt: skip
    """Run the gateway, which serves any model to clients of any API.

    It serves the models of every provider whose key is set, and local ones, to clients of the
    OpenAI, Anthropic, Gemini and Ollama APIs. Without a configuration file, clients request models
    by name or as PROVIDER:MODEL. Options override the configuration file.
    """
    with clean_ending():
        try:
            from dragoman.gateway.launching import Launch, expect_safe
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in {"uvicorn", "httptools"}:
                raise
            raise Ending(USAGE, _MISSING) from None
        given = {"host": host, "port": port, "workers": workers, "log": log}
        changes = {name: value for name, value in given.items() if value is not None}
        launch = _launched(Launch, path, changes)
        if check:
            _explain(launch.config)
            expect_safe(launch.config)  # what would keep the server from starting
        else:
            sys.exit(launch.run(_say))


def _launched(make: Any, path: Path | None, changes: dict[str, Any]) -> Any:
    """Prepare the server; each problem in its file is reported on its own line."""
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
    from dragoman.cli.wrapping import say

    say(harmless(text), err=True)


def _explain(config: GatewayConfig) -> None:
    from dragoman.cli.screen import harmless
    from dragoman.gateway.middleware import load_middleware
    from dragoman.gateway.summary import summary

    load_middleware(config)  # raises if one can't be used
    for line in summary(config):
        click.echo(harmless(line))
