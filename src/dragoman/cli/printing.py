"""How commands print what they found: as a table for people, as JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import click

json_option = click.option(
    "--json/--table",
    "as_json",
    default=None,
    help="Print JSON or a table. The default is a table on a terminal, JSON in a pipe.",
)


def wants_json(as_json: bool | None) -> bool:  # noqa: FBT001 - what click gives
    """Whether to print JSON: asked for, or not on a terminal."""
    return not sys.stdout.isatty() if as_json is None else as_json


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    print_json_text(json.dumps(value, ensure_ascii=False, indent=2))


def print_json_text(text: str) -> None:
    """JSON on standard output; what would do something to a terminal is escaped.

    JSON itself lets some of it stand: the second set of controls, and what turns text around.
    """
    from dragoman.cli.screen import HARMFUL

    click.echo(HARMFUL.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def print_found(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table; where it would be empty, a word on standard error instead."""
    from dragoman.cli.screen import print_table

    if rows:
        print_table(headers, rows)
    else:
        click.echo("nothing found", err=True)
