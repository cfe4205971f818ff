"""`dragoman providers`: list the providers, and check which of them respond."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.exit_codes import EXIT_CODES, FOUND, Ending, clean_ending
from dragoman.cli.printing import json_option, print_json, wants_json
from dragoman.cli.provider_status import OWN, described, described_own

if TYPE_CHECKING:
    from dragoman.transport.protocol import Transport

Row = dict[str, Any]


@click.command(epilog=EXIT_CODES, short_help="List the providers and their configuration.")
@click.argument("names", nargs=-1, metavar="[PROVIDER]...")
@click.option("--check", is_flag=True, help="Send a request to each configured provider.")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), default=10.0,
              show_default=True, metavar="SECONDS", help="Timeout for each provider.")  # fmt: skip
@json_option
def providers(names: tuple[str, ...], timeout: float, *, check: bool, as_json: bool | None) -> None:
    """List the providers: their dialects, addresses, and the variables that hold their keys.

    A provider is configured if everything it needs is set. Keys are never shown. --check requests
    the model list of each configured provider; the exit code is 1 if one that is named, or whose
    key is set, doesn't respond.
    """
    with clean_ending():
        rows = _rows(names)
        if check:
            rows = _checked(rows, timeout)
        if wants_json(as_json):
            print_json(rows)
        else:
            _print(rows, with_answers=check)
        if any(row.get("answers") is False and (names or row["key_set"]) for row in rows):
            raise Ending(FOUND)


def _rows(names: tuple[str, ...]) -> list[Row]:
    from dragoman.providers.registry import provider, provider_names

    if names:
        return [described_own(n) if n in OWN else described(provider(n)) for n in names]
    return [*map(_listed, provider_names()), *map(described_own, OWN)]


def _listed(name: str) -> Row:
    """A provider; a broken one from an installed package is reported in its row."""
    from dragoman.errors import ConfigError
    from dragoman.providers.registry import provider

    try:
        return described(provider(name))
    except ConfigError as error:
        return {
            "name": name,
            "dialects": [],
            "base_url": None,
            "key_variables": [],
            "key_set": None,
            "needs": [str(error)],
            "configured": False,
        }


# --- output


def _print(rows: list[Row], *, with_answers: bool) -> None:
    from dragoman.cli.screen import print_table

    count = 5 if with_answers else 4
    headers = ("provider", "dialects", "address", "key", "responds")
    print_table(headers[:count], [_cells(row)[:count] for row in rows])


def _cells(row: Row) -> tuple[str, ...]:
    address = row["base_url"] or ("on this machine" if row["name"] in OWN else "--base-url")
    return (row["name"], ", ".join(row["dialects"]) or "-", address, _key(row), _answer(row))


def _key(row: Row) -> str:
    if row["key_set"]:
        return f"{row['key_set']} is set"
    missing = [each for each in row["needs"] if each != "--base-url"]
    if missing:
        return f"needs {', '.join(missing)}"
    return "none needed"


def _answer(row: Row) -> str:
    if "answers" not in row:
        return ""
    if row["answers"]:
        count = row["models"]
        return "yes" if count is None else f"yes, {count} model{'' if count == 1 else 's'}"
    said = "not checked" if row["answers"] is None else "no"
    return f"{said}: {row['problem']}" if row["problem"] else said


# --- checks


def _checked(rows: list[Row], seconds: float) -> list[Row]:
    import asyncio

    from dragoman.cli.spinner import waiting

    with waiting("Checking the providers …"):
        return asyncio.run(_asked_all(rows, seconds))


async def _asked_all(rows: list[Row], seconds: float) -> list[Row]:
    import asyncio

    from dragoman.transport.http import HttpTransport

    transport = HttpTransport()
    try:
        answers = await asyncio.gather(*(_asked(row, transport, seconds) for row in rows))
    finally:
        await transport.close()
    return [{**row, **answer} for row, answer in zip(rows, answers, strict=True)]


async def _asked(row: Row, transport: Transport, seconds: float) -> Row:
    from dragoman.cli.model_listing import listed
    from dragoman.cli.provider_errors import explained
    from dragoman.errors import ConfigError, DragomanError

    if not row["configured"]:
        return _answered(answers=None)
    if row["name"] in OWN:
        return _answered(answers=True)
    try:
        models = await listed(row["name"], transport, seconds)
    except ConfigError as error:  # it has no model list: nothing is known
        return _answered(answers=None, problem=str(error))
    except DragomanError as error:
        return _answered(answers=False, problem=explained(error))
    return _answered(answers=True, models=len(models))


def _answered(
    *, answers: bool | None, models: int | None = None, problem: str | None = None
) -> Row:
    return {"answers": answers, "models": models, "problem": problem}
