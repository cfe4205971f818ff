"""Prints results: as a table for people, as JSON for programs."""

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
    help="Print JSON or a table. Default: a table on a terminal, JSON in a pipe.",
)


def wants_json(as_json: bool | None) -> bool:  # noqa: FBT001 - what click gives
    """Whether to print JSON: if requested, or if standard output is not a terminal."""
    return not sys.stdout.isatty() if as_json is None else as_json


def print_json(value: Any) -> None:
    """Print one JSON document to standard output."""
    print_json_text(json.dumps(value, ensure_ascii=False, indent=2))


def print_json_text(text: str) -> None:
    """Print JSON to standard output, with control and other invisible characters escaped.

    JSON itself allows some of them unescaped: C1 controls and bidirectional overrides.
    """
    from dragoman.model.invisible import made_visible

    click.echo(made_visible(text, lambda char: json.dumps(char)[1:-1]))


def print_found(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; if it is empty, a note on standard error instead."""
    from dragoman.cli.screen import print_table

    if rows:
        print_table(headers, rows)
    else:
        click.echo("nothing found", err=True)
