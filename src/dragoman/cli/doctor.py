"""`dragoman doctor`: show what is installed and configured, problems, and next steps."""

from __future__ import annotations

from typing import Any

import click

from dragoman.cli.exit_codes import EXIT_CODES, FOUND, Ending, clean_ending
from dragoman.cli.printing import json_option, print_json, wants_json

Row = dict[str, Any]
_EXTRAS = {
    "cli": ("click", "rich"),
    "encryption": ("cryptography",),
    "gateway": ("uvicorn",),
    "local": ("xllamacpp",),
    "mariadb": ("asyncmy",),
    "mcp": ("mcp",),
    "otel": ("opentelemetry",),
    "postgres": ("psycopg",),
    "prices": ("genai_prices",),
    "redis": ("redis",),
}
_MAX_COUNTED = 1000
_MAX_MODELS_SHOWN = 3


@click.command(epilog=EXIT_CODES, short_help="Check the installation, keys, servers and stores.")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), default=3.0,
              show_default=True, metavar="SECONDS",
              help="Timeout for each server.")  # fmt: skip
@json_option
def doctor(timeout: float, *, as_json: bool | None) -> None:
    """Check the installation, keys, local servers, models and stores, and suggest next steps.

    Providers on the network are not contacted: `dragoman providers --check` does that. Keys are
    never shown. The exit code is 1 if there is a problem.
    """
    with clean_ending():
        rows = _examined(timeout)
        if wants_json(as_json):
            print_json(rows)
        else:
            _print(rows)
        if any(row["state"] == "wrong" for row in rows):
            raise Ending(FOUND)


def _examined(timeout: float) -> list[Row]:
    import asyncio

    from dragoman.cli.spinner import waiting

    with waiting("Checking …"):
        servers = asyncio.run(_servers(timeout))
        rows = [_program(), *_extras(), *_keys(), *servers, *_local(), _store()]
    return [*rows, *(_row("next", "", "hint", text) for text in _next(rows))]


def _row(kind: str, name: str, state: str, found: str) -> Row:
    """A row; `state` is ok, missing (optional), or wrong."""
    return {"kind": kind, "name": name, "state": state, "found": found}


# --- the checks


def _program() -> Row:
    import platform

    from dragoman import __version__

    return _row("program", "dragoman", "ok", f"{__version__}, Python {platform.python_version()}")


def _extras() -> list[Row]:
    """The extras, and whether their packages are installed."""
    from importlib.util import find_spec

    rows: list[Row] = []
    for extra, packages in _EXTRAS.items():
        missing = [package for package in packages if find_spec(package) is None]
        if missing:
            found = f"pip install 'dragoman[{extra}]' for {', '.join(missing)}"
            rows.append(_row("extra", extra, "missing", found))
        else:
            rows.append(_row("extra", extra, "ok", "installed"))
    return rows


def _keys() -> list[Row]:
    """The providers with a key, and the variables that hold them."""
    from dragoman.cli.provider_status import key_variable, needs
    from dragoman.errors import ConfigError
    from dragoman.providers.registry import provider, provider_names

    rows: list[Row] = []
    for name in provider_names():
        try:
            place = provider(name)
        except ConfigError as error:  # from an installed package
            rows.append(_row("provider", name, "wrong", str(error)))
            continue
        variable = key_variable(place)
        if variable is None:
            continue
        missing = needs(place)
        if missing:
            rows.append(_row("provider", name, "wrong", f"{variable} is set; missing {missing[0]}"))
        else:
            rows.append(_row("provider", name, "ok", f"{variable} is set"))
    return rows


async def _servers(seconds: float) -> list[Row]:
    """The servers on this machine that respond."""
    import asyncio

    from dragoman.cli.reachable_models import servers
    from dragoman.transport.http import HttpTransport

    transport = HttpTransport()
    try:
        found = await asyncio.gather(*(_server(name, transport, seconds) for name in servers()))
    finally:
        await transport.close()
    return [row for row in found if row is not None]


async def _server(name: str, transport: Any, seconds: float) -> Row | None:
    from dragoman.cli.model_listing import listed
    from dragoman.cli.provider_errors import explained
    from dragoman.cli.reachable_models import address_here
    from dragoman.errors import ConnectError, DragomanError

    try:
        models = await listed(name, transport, seconds, address_here(name))
    except (ConnectError, TimeoutError):
        return None  # it isn't running
    except DragomanError as error:
        return _row("server", name, "wrong", explained(error))
    some = ", ".join(model.id for model in models[:_MAX_MODELS_SHOWN])
    more = f" and {len(models) - _MAX_MODELS_SHOWN} more" if len(models) > _MAX_MODELS_SHOWN else ""
    return _row("server", name, "ok", f"{some}{more}" if models else "running, without models")


def _local() -> list[Row]:
    """Models stored as files on this machine."""
    from dragoman.cli.model_listing import local_rows
    from dragoman.errors import DragomanError

    try:
        found = local_rows()
    except (DragomanError, OSError) as error:
        return [_row("local model", "", "wrong", str(error))]
    return [_row("local model", row["model"], "ok", "here") for row in found if row["fetched"]]


def _store() -> Row:
    """The default store, and whether it is readable."""
    import os

    from dragoman.cli.history.stores import counted, file_of
    from dragoman.errors import DragomanError
    from dragoman.history.storage_urls import VARIABLE, storage_at
    from dragoman.model.portal import run

    name = VARIABLE if os.environ.get(VARIABLE) else "default"
    try:
        file = file_of(None)
        if file is not None and not file.exists():  # opening it would create it
            return _row("store", name, "missing", "no stored conversations yet")
        storage, _ = storage_at(None)
        run(storage.open())
        try:
            count = len(run(storage.sessions(limit=_MAX_COUNTED + 1)))
        finally:
            run(storage.close())
    except DragomanError as error:
        return _row("store", name, "wrong", str(error))
    is_more = count > _MAX_COUNTED
    conversations = "over 1,000 conversations" if is_more else counted(count, "conversation")
    return _row("store", name, "ok", f"{storage.name}: {conversations}")


def _next(rows: list[Row]) -> list[str]:
    """Suggestions, quickest first."""
    usable = {row["kind"]: row for row in reversed(rows) if row["state"] == "ok"}
    hints: list[str] = []
    if "server" in usable:
        hints.append(f"dragoman chat {usable['server']['name']}   chat with a local model")
    if "provider" in usable:
        hints.append(f"dragoman models {usable['provider']['name']}   list its models")
    if not hints:
        hints.append("dragoman tour   try a small model on this machine, without a key")
        hints.append("dragoman providers   list providers and their key variables")
    if any(row["kind"] == "store" and row["state"] == "wrong" for row in rows):
        hints.append("dragoman history verify   show the problems of the store")
    return hints


# --- output


def _print(rows: list[Row]) -> None:
    from dragoman.cli.screen import print_table

    shown = [row for row in rows if row["kind"] != "next"]
    print_table(
        ("what", "name", "state", "found"),
        [(row["kind"], row["name"], row["state"], row["found"]) for row in shown],
    )
    click.echo("\nNext steps:")
    for row in rows:
        if row["kind"] == "next":
            click.echo(f"  {row['found']}")
