"""`dragoman aliases`: short names for models, and the default model."""

from __future__ import annotations

import click

from dragoman.cli.exit_codes import EXIT_CODES, USAGE, Ending, clean_ending
from dragoman.cli.printing import json_option, print_found, print_json, wants_json


@click.group(invoke_without_command=True, epilog=EXIT_CODES)
@click.pass_context
def aliases(context: click.Context) -> None:
    """Give models short names, and choose a default model.

    An alias can be used wherever a model is named: `ask -m fast`, `chat fast`, `/model fast`, in a
    template, in $DRAGOMAN_MODEL. `ask` and `chat` use the alias `default` if no model is named.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_aliases)


@aliases.command("list")
@json_option
def list_aliases(*, as_json: bool | None = None) -> None:
    """List the aliases."""
    with clean_ending():
        from dragoman.cli.model_aliases import aliases as known

        found = sorted(known().items())
        rows = [{"alias": alias, "model": each.name, "base_url": each.base_url}
                for alias, each in found]  # fmt: skip
        if wants_json(as_json):
            print_json(rows)
        else:
            cells = [(row["alias"] or "", row["model"] or "", row["base_url"] or "")
                     for row in rows]  # fmt: skip
            print_found(("alias", "model", "address"), cells)


@aliases.command("set")
@click.argument("alias")
@click.argument("model")
@click.option("--base-url", metavar="URL", help="Base URL, if not the provider's default.")
def set_alias(alias: str, model: str, base_url: str | None) -> None:
    """Set ALIAS to MODEL: provider:model, or another alias."""
    with clean_ending():
        from dragoman.cli.model_aliases import Chosen, expect_alias, resolved, write_aliases
        from dragoman.cli.model_aliases import aliases as known

        _expect_free(expect_alias(alias))
        everything = known() | {alias: Chosen(model, base_url)}
        meant = resolved(model, everything).name
        _expect_model(meant)
        write_aliases(everything)
        click.echo(f"{alias} is {meant}", err=True)


def _expect_free(alias: str) -> None:
    """Exit if the alias is the name of a provider: `openai` alone is a valid model name."""
    from dragoman.cli.provider_status import OWN
    from dragoman.providers.registry import provider_names

    if alias in {*OWN, *provider_names()}:
        raise Ending(USAGE, f"{alias} is the name of a provider; choose another alias")


def _expect_model(name: str) -> None:
    """Exit unless the name is a local model or belongs to a known provider."""
    from dragoman.cli.provider_status import named_place, own_model
    from dragoman.transport.deployments import parse_model

    if own_model(name) is None:
        parsed = parse_model(name)
        named_place(parsed.provider, has_model=parsed.chat is not None, model=parsed.chat)


@aliases.command()
@click.argument("alias")
def remove(alias: str) -> None:
    """Remove an alias."""
    with clean_ending():
        from dragoman.cli.model_aliases import aliases as known
        from dragoman.cli.model_aliases import write_aliases

        everything = known()
        if everything.pop(alias, None) is None:
            raise Ending(USAGE, f"there is no alias {alias}; `dragoman aliases list` shows all")
        write_aliases(everything)


@aliases.command()
def path() -> None:
    """Print the path of the aliases file."""
    with clean_ending():
        from dragoman.cli.model_aliases import aliases_path

        click.echo(aliases_path())
