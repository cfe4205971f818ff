"""`dragoman schema`: print the JSON Schema of the canonical form."""

from __future__ import annotations

import json
from typing import Any

import click

from dragoman.cli.exit_codes import USAGE, Ending, clean_ending
from dragoman.cli.printing import json_option, print_json, wants_json

_WHOLE = "document"


@click.command()
@click.argument("kind", required=False, metavar="[TYPE]")
@json_option
def schema(kind: str | None, *, as_json: bool | None) -> None:
    """Print the JSON Schema of a type in the canonical form.

    Without a TYPE, the types are listed. `document` is the schema of the output of `convert --to
    canonical` and `show --json`. A schema is always printed as JSON.
    """
    with clean_ending():
        from dragoman.model.schema import document_schema

        whole = document_schema()
        roots = {_kind(one): one["properties"]["value"] for one in whole["oneOf"]}
        if kind is None:
            _list([_WHOLE, *sorted(roots)], is_json=wants_json(as_json))
        elif kind == _WHOLE:
            click.echo(json.dumps(whole, indent=2, ensure_ascii=False))
        elif kind in roots:
            found = _of_kind(kind, roots[kind], whole)
            click.echo(json.dumps(found, indent=2, ensure_ascii=False))
        else:
            raise Ending(USAGE, "there is no such type; `dragoman schema` lists them")


def _list(names: list[str], *, is_json: bool) -> None:
    if is_json:
        print_json(names)
    else:
        click.echo("\n".join(names))


def _kind(document: dict[str, Any]) -> str:
    name: str = document["properties"]["kind"]["const"]
    return name


def _of_kind(kind: str, root: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """The schema of one type, with the definitions it refers to."""
    needed: dict[str, Any] = {}
    pending: list[Any] = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending += node
        elif isinstance(node, dict):
            pending += node.values()
            name = str(node.get("$ref", "")).removeprefix("#/$defs/")
            if name and name not in needed:
                needed[name] = whole["$defs"][name]
                pending.append(needed[name])
    return {
        "$schema": whole["$schema"],
        "title": kind,
        **root,
        "$defs": {name: needed[name] for name in sorted(needed)},
    }
