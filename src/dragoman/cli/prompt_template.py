"""Prompt templates for `ask -t` and `chat -t`: their settings are read as `-o` is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.agent import prompt_templates
from dragoman.agent.prompt_templates import (
    SUFFIX,
    Template,
    template_names,
    template_path,
    template_text,
)
from dragoman.cli.exit_codes import BROKEN, USAGE, Ending

if TYPE_CHECKING:
    from dragoman.cli.ask_options import Options

DEFAULT = "default"
"""The template that is used if neither a model nor a template is named."""


def default_template() -> Template | None:
    """The template `default`, if it exists."""
    if not template_path(DEFAULT).is_file():
        return None
    return load_template(DEFAULT).with_values({})


def load_template(name: str) -> Template:
    """A template by name or file path; exits if it can't be used."""
    path = Path(name) if name.endswith(SUFFIX) else template_path(name)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        from dragoman.model.spelling import did_you_mean

        near = did_you_mean(name, template_names())
        raise Ending(USAGE, f"there is no template {name}{near or '; `dragoman templates` lists'}"
                     f"{'' if near else ' them'}") from None  # fmt: skip
    return template_from(path.stem, content)


def template_from(name: str, content: bytes) -> Template:
    """Parse a template; exits if it is invalid."""
    found = prompt_templates.template_from(name, content)
    return replace(found, settings=_settings(name, found.settings))


def _settings(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings: TOML values as they are, strings parsed as in `-o`."""
    from dragoman.cli.request_settings import known_setting, setting_value

    def text(value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value, default=str)

    try:
        return {
            (known := known_setting(key)): setting_value(known, text(value))
            for key, value in given.items()
        }
    except Ending as ending:
        raise Ending(BROKEN, f"template {name}: {ending.message}") from None


def command_text(given: Options, model: str | None, prompt: str) -> str:
    """The command line as a template file."""
    return template_text(
        Template(
            name="",
            model=model,
            base_url=given.base_url,
            system=given.instructions,
            prompt=prompt or None,
            tools=tuple(given.tool_names),
            schema=given.schema,
            settings=given.settings,
        )
    )
