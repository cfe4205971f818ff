"""`dragoman dialects`: the wire formats there are."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import click

from dragoman.cli.endings import clean_ending


@click.command(short_help="List the dialects.")
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def dialects(*, as_json: bool) -> None:
    """List the dialects: what each is, where it is spoken, and by whom."""
    with clean_ending():
        from dragoman.cli.screen import print_table

        rows = _rows()
        if as_json:
            click.echo(json.dumps(rows, indent=2))
            return
        table = [
            (row["name"], row["about"], row["endpoints"]["generate"], ", ".join(row["providers"]))
            for row in rows
        ]
        print_table(("name", "what it is", "endpoint", "providers"), table)


def _rows() -> list[dict[str, Any]]:
    from dragoman.providers.endpoints import USUAL
    from dragoman.providers.registry import provider, provider_names
    from dragoman.wire.dialect import dialects as dialect_names

    spoken = {name: provider(name).dialects for name in provider_names()}
    rows: list[dict[str, Any]] = []
    for name in dialect_names():
        module = import_module(f"dragoman.wire.{name.replace('-', '_')}")
        paths = USUAL.get(name)
        endpoints = {} if paths is None else {
            field: path
            for field in paths.__struct_fields__
            if (path := getattr(paths, field)) is not None
        }  # fmt: skip
        rows.append({
            "name": name,
            "about": (module.__doc__ or "").strip().partition("\n")[0].rstrip("."),
            "endpoints": {"generate": "", **endpoints},
            "providers": [one for one, known in spoken.items() if name in known],
        })  # fmt: skip
    return rows
