"""`dragoman models`: list the available models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dragoman.cli.exit_codes import EXIT_CODES, PROVIDER, USAGE, Ending, clean_ending, complain
from dragoman.cli.model_listing import Row, echo_row, listed, local_rows, row_of
from dragoman.cli.printing import json_option, print_found, print_json, wants_json
from dragoman.cli.provider_status import address_of, described, expect_ready, named_place, own_model

if TYPE_CHECKING:
    from dragoman.errors import DragomanError
    from dragoman.model.catalogue import ModelInfo
    from dragoman.transport.protocol import Transport


@click.command(epilog=EXIT_CODES)
@click.argument("provider", required=False, metavar="[PROVIDER]")
@click.option(
    "--facts",
    is_flag=True,
    help="Show known facts about models and their sources: all, a PROVIDER's, or one MODEL's.",
)
@click.option("--base-url", metavar="URL", help="Base URL, if not the provider's default.")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), default=30.0,
              show_default=True, metavar="SECONDS",
              help="Timeout for each provider.")  # fmt: skip
@json_option
def models(
    provider: str | None,
    base_url: str | None,
    timeout: float,
    *,
    facts: bool,
    as_json: bool | None,
) -> None:
    """List the models of a provider, or of all configured providers.

    `local` lists the models on this machine, and those that can be downloaded. The first column is
    the name to pass to `dragoman ask`. The context window is as reported by the provider, or else
    as known to Dragoman.

    --facts makes no requests: it shows what Dragoman knows about models. Your own facts file
    ($DRAGOMAN_FACTS) takes precedence.
    """
    with clean_ending():
        if facts:
            _show_facts(provider, base_url, as_json=as_json)
            return
        if provider is None and base_url is not None:
            raise Ending(USAGE, "--base-url needs a PROVIDER, such as openai-compatible")
        rows, has_failed = _everywhere(timeout) if provider is None else (
            _at(provider, base_url, timeout), False
        )  # fmt: skip
        if wants_json(as_json):
            print_json(rows)
        else:
            print_found(("model", "name", "context window"), [_cells(row) for row in rows])
        if has_failed:
            raise Ending(PROVIDER)


def _show_facts(about: str | None, base_url: str | None, *, as_json: bool | None) -> None:
    import json

    from dragoman.providers.facts.listing import facts

    if base_url is not None:
        raise Ending(USAGE, "--facts makes no requests, and can't be combined with --base-url")
    found = facts(about)
    if about is not None and not found:
        complain("no known provider or model matches this name")
    if wants_json(as_json):
        print_json([fact._asdict() for fact in found])
        return
    print_found(
        ("models", "dialect", "fact", "value", "source", "date"),
        [
            (each.models, each.dialect or "", each.name, json.dumps(each.value), each.source,
             each.date)
            for each in found
        ],
    )  # fmt: skip


def _cells(row: Row) -> tuple[str, str, str]:
    window = row["context_window"]
    return (row["model"], _about(row), f"{window:,}" if window else "")


def _about(row: Row) -> str:
    from dragoman.cli.screen import size_of

    if "fetched" not in row:
        return row["name"] or ""
    size = size_of(row["bytes"])
    if row["fetched"]:
        return f"on this machine, {size}"
    return f"can be downloaded, {size}, {row['licence']}"


def _at(name: str, base_url: str | None, seconds: float) -> list[Row]:
    """The models of one provider."""
    from dragoman.cli.provider_errors import run
    from dragoman.cli.spinner import waiting

    own = own_model(name)
    if own is not None:
        if base_url is not None:
            raise Ending(USAGE, f"{own.kind} runs on this machine, and doesn't accept --base-url")
        return local_rows() if own.kind == "local" else [echo_row()] if own.kind == "echo" else []
    place = named_place(name)
    expect_ready(place, base_url)
    with waiting(f"Asking {place.name} …"):
        address = address_of(place, base_url)
        found = run(_asked(place.name, base_url, seconds), place.name, address)
    return [row_of(place.name, model) for model in found]


async def _asked(name: str, base_url: str | None, seconds: float) -> tuple[ModelInfo, ...]:
    from dragoman.transport.http import HttpTransport

    transport = HttpTransport()
    try:
        return await listed(name, transport, seconds, base_url)
    finally:
        await transport.close()


# --- all configured providers


def _everywhere(seconds: float) -> tuple[list[Row], bool]:
    """The models of all providers, and whether one with a key failed."""
    import asyncio

    from dragoman.cli.spinner import waiting

    places = _configured()
    with waiting("Asking the providers …"):
        answers = asyncio.run(_asked_all([*places], seconds))
    rows = [
        row_of(name, model)
        for name, answer in zip(places, answers, strict=True)
        if isinstance(answer, tuple)
        for model in answer
    ]
    failed = [
        _told(name, answer)
        for name, answer in zip(places, answers, strict=True)
        # Local servers, which need no key, are often not running: that is not worth reporting.
        if not isinstance(answer, tuple) and places[name]
    ]
    return [*rows, *local_rows(), echo_row()], any(failed)


def _configured() -> dict[str, bool]:
    """The configured providers, and whether they have a key."""
    from dragoman.errors import ConfigError
    from dragoman.providers.registry import provider, provider_names

    found: dict[str, bool] = {}
    for name in provider_names():
        try:
            row = described(provider(name))
        except ConfigError:
            continue  # a plugin with a broken provider: `providers` reports it
        if row["configured"]:
            found[name] = row["key_set"] is not None
    return found


async def _asked_all(
    names: list[str], seconds: float
) -> list[tuple[ModelInfo, ...] | DragomanError]:
    import asyncio

    from dragoman.transport.http import HttpTransport

    transport = HttpTransport()
    try:
        return await asyncio.gather(*(_answer(name, transport, seconds) for name in names))
    finally:
        await transport.close()


async def _answer(
    name: str, transport: Transport, seconds: float
) -> tuple[ModelInfo, ...] | DragomanError:
    from dragoman.errors import DragomanError

    try:
        return await listed(name, transport, seconds)
    except DragomanError as error:
        return error


def _told(name: str, error: DragomanError) -> bool:
    """Report a problem; returns whether it is a failure, not just a missing model list."""
    from dragoman.cli.provider_errors import explained
    from dragoman.errors import ConfigError

    complain(f"{name}: {explained(error)}")
    return not isinstance(error, ConfigError)
