"""Options that `ask` and `chat` share: the model, what it is told, and how it is to answer."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.exit_codes import USAGE, Ending

if TYPE_CHECKING:
    from dragoman.cli.prompt_template import Template

MODEL_VARIABLE = "DRAGOMAN_MODEL"
"""The environment variable that names a model where nothing else does."""

_OPTIONS = (
    click.option("-m", "--model", "named_model", metavar="MODEL",
                 help="The model, if it is not the first argument."),
    click.option("-s", "--system", metavar="TEXT", help="Instructions for the model."),
    click.option("-t", "--template", metavar="NAME",
                 help="Use a template: a prompt, instructions, a model, settings."),
    click.option("-p", "--param", "params", multiple=True, nargs=2, metavar="NAME VALUE",
                 help="A value for $NAME in the template. Repeatable."),
    click.option("-o", "--option", "pairs", multiple=True, metavar="NAME=VALUE",
                 help="Any setting of a request: top_p=0.9, seed=7. Repeatable."),
    click.option("--max-tokens", type=click.IntRange(1), metavar="N",
                 help="Maximum tokens per answer."),
    click.option("--temperature", type=click.FloatRange(0), metavar="X",
                 help="Sampling temperature; 0 is the most predictable."),
    click.option("--thinking", metavar="EFFORT",
                 help="How long to think first: none, low, medium, high, … or a number of tokens."),
    click.option("-T", "--tools", multiple=True, metavar="FILE.py|MODULE:NAME",
                 help="Functions the model may call: a file, a module, Python such as"
                      " 'def f(x: int): …', or `builtin` (two examples). Repeatable."),
    click.option("-u", "--usage", is_flag=True, help="Show tokens and cost after each answer."),
    click.option("--dialect", metavar="DIALECT", help="Which of the provider's dialects to use."),
    click.option("--base-url", metavar="URL", help="The provider's address, if not the usual one."),
    click.option("--yes", is_flag=True, help="Download a missing local model without asking."),
)  # fmt: skip


def model_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that are about the model."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def given_template(options: dict[str, Any], *, has_model: bool) -> Template | None:
    """The template that was asked for, with its values; takes both out of the options.

    Where no model is named either, the one called `default`, if there is one.
    """
    from dragoman.cli.prompt_template import default_template, load_template

    name, params = options.pop("template"), dict(options.pop("params"))
    if name is None:
        if params:
            raise Ending(USAGE, "-p is for a template: name it with -t")
        kept = options.get("is_continued") or options.get("session")
        is_named = has_model or options["named_model"] or os.environ.get(MODEL_VARIABLE) or kept
        return None if is_named else default_template()

    return load_template(name).with_values(params)


def given_settings(options: dict[str, Any], template: Template | None) -> dict[str, Any]:
    """The settings: the template's, then those of -o, then those with an option of their own."""
    from dragoman.cli.request_settings import setting_value, settings_from

    found: dict[str, Any] = {} if template is None else {**template.settings}
    found |= settings_from(options.pop("pairs"))
    thinking = options.pop("thinking")
    if thinking is not None:
        found["thinking"] = setting_value("thinking", thinking)
    for name in ("max_tokens", "temperature"):
        if (value := options.pop(name)) is not None:
            found[name] = value
    return found
