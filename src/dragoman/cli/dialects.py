"""`dragoman dialects`: list the supported wire formats."""

from __future__ import annotations

from typing import Any

import click

from dragoman.cli.exit_codes import clean_ending
from dragoman.cli.printing import json_option, print_json, wants_json


@click.command(short_help="List the supported dialects (wire formats).")
@json_option
def dialects(*, as_json: bool | None) -> None:
    """List the supported dialects (wire formats), with their endpoints and providers."""
    with clean_ending():
        from dragoman.cli.screen import print_table

        rows = _rows()
        for name, problem in _unusable().items():
            click.echo(f"{name}: {problem}", err=True)
        if wants_json(as_json):
            print_json(rows)
            return
        table = [
            (row["name"], row["about"], row["endpoints"]["generate"], ", ".join(row["providers"]))
            for row in rows
        ]
        print_table(("name", "description", "endpoint", "providers"), table)


def _rows() -> list[dict[str, Any]]:
    from dragoman.providers.endpoints import USUAL
    from dragoman.providers.registry import providers
    from dragoman.wire.dialect import descriptions

    rows: list[dict[str, Any]] = []
    for name, about in sorted((one.name, one.about) for one in descriptions()):
        speakers = [one for one in providers() if name in one.dialects]
        elsewhere = (one.endpoints[name] for one in speakers if name in one.endpoints)
        paths = USUAL.get(name) or next(elsewhere, None)
        endpoints = {} if paths is None else {
            field: path
            for field in paths.__struct_fields__
            if (path := getattr(paths, field)) is not None
        }  # fmt: skip
        rows.append({
            "name": name,
            "about": about,
            "endpoints": {"generate": "", **endpoints},
            "providers": [one.name for one in speakers],
        })  # fmt: skip
    return rows


def _unusable() -> dict[str, str]:
    """The problems of dialects from installed packages that can't be used."""
    from dragoman.wire.dialect import unusable_dialects

    return unusable_dialects()
