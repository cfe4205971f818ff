"""`dragoman keys`: the gateway's virtual keys, their limits and their usage."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.exit_codes import EXIT_CODES, FILES, USAGE, Ending, clean_ending
from dragoman.cli.printing import json_option, print_found, print_json, wants_json

if TYPE_CHECKING:  # loaded when a command runs: `dragoman --help` doesn't need it
    from dragoman.gateway.keys import Keys

store_option = click.option(
    "--store",
    metavar="URL",
    help="URL of the key store (sqlite:///file, postgresql://…, mariadb://…, redis://…). Default:"
    " $DRAGOMAN_KEYS, `keys` in dragoman.toml, or a file in your data directory.",
)


@click.group(invoke_without_command=True, epilog=EXIT_CODES)
@click.pass_context
def keys(context: click.Context) -> None:
    """Manage the gateway's virtual keys, and show their usage."""
    if context.invoked_subcommand is None:
        context.invoke(list_keys)


@keys.command()
@store_option
@click.option("--name", default="", help="A descriptive name, such as a team's.")
@click.option(
    "--model",
    "models",
    metavar="PATTERN",
    multiple=True,
    help="A model that the key may use; * matches any text. Repeatable.  [default: all]",
)
@click.option("--rpm", type=int, metavar="N", help="Maximum requests per minute.")
@click.option("--tpm", type=int, metavar="N", help="Maximum tokens per minute.")
@click.option("--concurrent", type=int, metavar="N", help="Maximum concurrent requests.")
@click.option(
    "--budget-cost",
    "costs",
    metavar="DOLLARS[/day|/month]",
    multiple=True,
    help="Maximum cost, in total or per UTC day or month, such as 5/day. Repeatable.",
)
@click.option(
    "--budget-tokens",
    "tokens",
    metavar="N[/day|/month]",
    multiple=True,
    help="Maximum tokens, such as 200k/day or 5M/month. Repeatable.",
)
@click.option("--expires", metavar="TIME", help="Lifetime, such as 12h, 30d or 4w.")
@click.option("--admin", is_flag=True, help="Let the key administer the gateway.")
@click.option("--json", "as_json", is_flag=True, help="Also print the key's record, as JSON.")
def create(  # noqa: PLR0913 - the options of a command
    *, store: str | None, name: str, models: tuple[str, ...], rpm: int | None, tpm: int | None,
    concurrent: int | None, costs: tuple[str, ...], tokens: tuple[str, ...], expires: str | None,
    admin: bool, as_json: bool,
) -> None:  # fmt: skip
    """Create a key, and print its secret.

    The secret is shown only once: the store keeps only its hash.
    """

    async def work(keys: Keys) -> None:
        from time import time

        from dragoman.cli.key_values import budget_of, described, duration_of

        budgets = [budget_of(text, "cost") for text in costs]
        budgets += [budget_of(text, "tokens") for text in tokens]
        expires_at = None if expires is None else time() + duration_of(expires)
        record, secret = await keys.create(
            name=name, models=models, requests_per_minute=rpm, tokens_per_minute=tpm,
            max_concurrent=concurrent, budgets=budgets, expires_at=expires_at, is_admin=admin,
        )  # fmt: skip
        if as_json:
            print_json({"secret": secret, **described(record)})
            return
        click.echo(secret)
        click.echo(f"created {record.id}; the secret above can't be shown again", err=True)

    _with_keys(store, work, makes=True)


@keys.command("list")
@store_option
@json_option
def list_keys(store: str | None = None, *, as_json: bool | None = None) -> None:
    """List the keys, with their limits and budgets."""

    async def work(keys: Keys) -> None:
        from dragoman.cli.key_values import COLUMNS, cells_of, described

        found = [(each, await keys.standing(each) if each.budgets else None)
                 for each in await keys.list()]  # fmt: skip
        if wants_json(as_json):
            print_json([described(*each) for each in found])
        else:
            print_found(COLUMNS, [cells_of(*each) for each in found])
        for id in keys.damaged:
            text = "is damaged and not listed: nobody can use it; revoke it and create another"
            click.echo(f"dragoman: {id[:64]!r} {text}", err=True)

    _with_keys(store, work)


@keys.command()
@store_option
@click.argument("key", nargs=-1, required=True)
def revoke(store: str | None, key: tuple[str, ...]) -> None:
    """Revoke keys permanently, by id or name. Running gateways notice within seconds."""

    async def work(keys: Keys) -> None:
        ids = [await _id_of(keys, each) for each in key]
        for id in ids:
            await keys.revoke(id)
            click.echo(f"revoked {id}", err=True)

    _with_keys(store, work)


@keys.command("rotate-envelopes")
@store_option
def rotate_envelopes(store: str | None) -> None:
    """Add a key that signs provider state; running gateways use it within minutes.

    State that was signed with the two keys before is still accepted.
    """

    async def work(keys: Keys) -> None:
        await keys.add_envelope_key()
        click.echo("added a key for envelopes; gateways use it within three minutes", err=True)

    _with_keys(store, work)


@keys.command()
@store_option
@click.argument("key", required=False)
@click.option(
    "--by",
    type=click.Choice(["model", "day", "key", "route"]),
    multiple=True,
    default=("model",),
    help="What to group by. Repeatable.  [default: model]",
)
@click.option("--since", metavar="DAY", help="Only from this UTC day on, such as 2026-11-01.")
@json_option
def usage(
    store: str | None, key: str | None, by: tuple[str, ...], since: str | None, *,
    as_json: bool | None,
) -> None:  # fmt: skip
    """Show requests, tokens and cost of one KEY (id or name), or of all keys."""

    async def work(keys: Keys) -> None:
        from dragoman.cli.key_values import SUM_COLUMNS, day_of, sum_cells, sums_of

        id = None if key is None else await _id_of(keys, key)
        wanted: Any = by
        rows = await keys.usage(id, by=wanted, since=None if since is None else day_of(since))
        if wants_json(as_json):
            print_json([sums_of(row, by) for row in rows])
        else:
            print_found((*by, *SUM_COLUMNS), [sum_cells(row, by) for row in rows])

    _with_keys(store, work)


async def _id_of(keys: Keys, given: str) -> str:
    """The id of a key given by id, by unique name, or by its secret."""
    from dragoman.gateway.keys.secret_form import id_of

    records = await keys.list()
    wanted = id_of(given) or given
    known = [*(each.id for each in records), *keys.damaged]
    found = [id for id in known if id == wanted]
    found = found or [each.id for each in records if given and each.name == given]
    if len(found) > 1:
        msg = f"{len(found)} keys have this name; use an id, as shown by `dragoman keys list`"
        raise Ending(USAGE, msg)
    if not found:
        raise Ending(USAGE, "there is no such key; `dragoman keys list` shows all keys")
    return found[0]


def _with_keys(
    url: str | None, work: Callable[[Keys], Awaitable[None]], *, makes: bool = False
) -> None:
    """Run `work` with the open store; only `create` may create one."""

    async def run() -> None:
        from dragoman.gateway.keys import Keys

        place = _place(url, makes=makes)
        opened = await Keys.open(place)
        try:
            await work(opened)
        finally:
            await opened.close()

    with clean_ending():
        import asyncio

        from dragoman.cli.history.stores import code_of
        from dragoman.errors import DragomanError

        try:
            asyncio.run(run())
        except DragomanError as error:
            raise Ending(code_of(error), str(error)) from None


def _configured() -> str | None:
    """The store that the gateway's configuration file names, if there is one."""
    import os

    from dragoman.gateway.config.reading import config_path, load_config

    if config_path(None, os.environ) is None:
        return None
    return load_config(None, os.environ).server.keys


def _place(url: str | None, *, makes: bool) -> str:
    """The URL of the store; exits if it doesn't exist yet."""
    from dragoman.gateway.keys.urls import file_at, store_url

    place = store_url(url or _configured())
    path = file_at(place)
    if path is not None and not makes and not path.exists():
        raise Ending(FILES, f"{path}: there are no keys yet; `dragoman keys create` creates one")
    return place
