"""`dragoman templates`: prompt templates for `ask -t` and `chat -t`."""

from __future__ import annotations

import sys
from typing import Any

import click

from dragoman.cli.exit_codes import EXIT_CODES, FILES, USAGE, Ending, clean_ending
from dragoman.cli.printing import json_option, print_found, print_json, wants_json

_EXAMPLE = """\
# Use this template with `dragoman ask -t {name} TEXT` or `dragoman chat -t {name}`.
# Remove what you don't need. $input is the prompt or standard input; set other $names with -p.

# model = "anthropic:claude-sonnet-4-5"
system = "Answer in one sentence."
prompt = "Summarise this: $input"
# tools = ["weather.py"]

[defaults]
# language = "English"

[settings]
# temperature = 0.2
"""


@click.group(invoke_without_command=True, epilog=EXIT_CODES)
@click.pass_context
def templates(context: click.Context) -> None:
    """List, show and edit prompt templates."""
    if context.invoked_subcommand is None:
        context.invoke(list_templates)


@templates.command("list")
@json_option
def list_templates(*, as_json: bool | None = None) -> None:
    """List the templates."""
    with clean_ending():
        from dragoman.agent.prompt_templates import template_names

        rows = [_described(name) for name in template_names()]
        if wants_json(as_json):
            print_json(rows)
        else:
            cells = [(row["name"], row["model"] or "", row["text"]) for row in rows]
            print_found(("template", "model", "text"), cells)


def _described(name: str) -> dict[str, Any]:
    from dragoman.cli.prompt_template import load_template
    from dragoman.cli.screen import clipped
    from dragoman.errors import DragomanError

    try:
        found = load_template(name)
    except (Ending, DragomanError, OSError) as problem:
        return {"name": name, "model": None, "text": str(problem)}
    said = " · ".join(filter(None, (found.system, found.prompt)))
    return {"name": name, "model": found.model, "text": clipped(" ".join(said.split()))}


@templates.command()
@click.argument("name")
def show(name: str) -> None:
    """Print a template's file."""
    with clean_ending():
        from dragoman.agent.prompt_templates import template_path
        from dragoman.cli.screen import harmless

        path = template_path(name)
        if not path.is_file():
            raise Ending(USAGE, f"there is no template {name}; `dragoman templates` lists them")
        text = path.read_text(encoding="utf-8", errors="replace")
        click.echo(harmless(text) if sys.stdout.isatty() else text, nl=False)


@templates.command()
@click.argument("name")
def edit(name: str) -> None:
    """Edit a template in $EDITOR; a new one starts with an example."""
    with clean_ending():
        from dragoman.agent.prompt_templates import template_path, write_template
        from dragoman.cli.prompt_template import template_from

        path = template_path(name)
        before = path.read_text(encoding="utf-8") if path.exists() else _EXAMPLE.format(name=name)
        try:
            text = click.edit(before, extension=".toml")
        except click.ClickException as error:
            raise Ending(FILES, f"the editor could not be run: {error.message}") from None
        if text is None:
            click.echo("nothing was changed", err=True)
            return
        write_template(name, text)
        template_from(name, text.encode())  # reports what is wrong with the template
        click.echo(f"{path}: saved", err=True)


@templates.command()
def path() -> None:
    """Print the path of the templates directory."""
    with clean_ending():
        from dragoman.agent.prompt_templates import templates_folder

        click.echo(templates_folder())
