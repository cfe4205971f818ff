"""Options shared by `ask` and `chat`: the model, its instructions and settings."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.exit_codes import USAGE, Ending

if TYPE_CHECKING:
    from dragoman.agent.prompt_templates import Template

MODEL_VARIABLE = "DRAGOMAN_MODEL"
"""The environment variable that names the default model."""

_OPTIONS = (
    click.option("-m", "--model", "named_model", metavar="MODEL",
                 help="The model, if it is not the first argument."),
    click.option("-s", "--system", metavar="TEXT", help="System prompt."),
    click.option("-t", "--template", metavar="NAME",
                 help="Use a template: prompt, system prompt, model and settings."),
    click.option("-p", "--param", "params", multiple=True, nargs=2, metavar="NAME VALUE",
                 help="Value for $NAME in the template. Repeatable."),
    click.option("-o", "--option", "pairs", multiple=True, metavar="NAME=VALUE",
                 help="Any request setting, such as top_p=0.9 or seed=7. Repeatable."),
    click.option("--max-tokens", type=click.IntRange(1), metavar="N",
                 help="Maximum tokens per answer."),
    click.option("--temperature", type=click.FloatRange(0), metavar="X",
                 help="Sampling temperature; 0 is the least random."),
    click.option("--thinking", metavar="EFFORT",
                 help="Reasoning effort: none, low, medium, high, … or a number of tokens."),
    click.option("-T", "--tools", multiple=True, metavar="FILE.py|MODULE:NAME",
                 help="Functions that the model may call: a file, a module, Python code such as"
                      " 'def f(x: int): …', or `builtin` (two examples). Repeatable."),
    click.option("-u", "--usage", is_flag=True, help="Show tokens and cost after each answer."),
    click.option("--dialect", metavar="DIALECT", help="Which of the provider's dialects to use."),
    click.option("--base-url", metavar="URL", help="Base URL, if not the provider's default."),
    click.option("--yes", is_flag=True, help="Download a missing local model without asking."),
)  # fmt: skip


def model_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for the model."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def given_template(options: dict[str, Any], *, has_model: bool) -> Template | None:
    """The selected template with its values; removes both from the options.

    If neither a model nor a template is named, the template `default`, if there is one.
    """
    from dragoman.cli.prompt_template import default_template, load_template

    name, params = options.pop("template"), dict(options.pop("params"))
    if name is None:
        if params:
            raise Ending(USAGE, "-p needs a template: name one with -t")
        kept = options.get("is_continued") or options.get("session")
        is_named = has_model or options["named_model"] or os.environ.get(MODEL_VARIABLE) or kept
        return None if is_named else default_template()

    return load_template(name).with_values(params)


def given_settings(options: dict[str, Any], template: Template | None) -> dict[str, Any]:
    """The settings: of the template, overridden by -o, overridden by specific options."""
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
