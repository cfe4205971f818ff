"""Prompt templates: named prompts with `$input`, a system prompt, a model and settings.

They are TOML files in the user's data directory, which the terminal and the gateway's page share:

```toml
model = "anthropic:claude-sonnet-4-5"
system = "Answer in one sentence."
prompt = "Summarise this in $language: $input"

[defaults]
language = "English"

[settings]
temperature = 0.2
```

A `ConfigError` is about the call (an unknown name, a missing value), an `InvalidInputError` about
the file. Neither quotes a prompt.
"""

from __future__ import annotations

import json
import re
import string
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from dragoman.errors import ConfigError, InvalidInputError

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_FIELDS = ("model", "base_url", "system", "prompt", "tools", "schema", "defaults", "settings")
INPUT = "input"
SUFFIX = ".toml"


@dataclass(frozen=True, kw_only=True)
class Template:
    """The contents of a template."""

    name: str
    model: str | None = None
    base_url: str | None = None
    """The model's base URL, if not the provider's default."""
    system: str | None = None
    prompt: str | None = None
    tools: tuple[str, ...] = ()
    schema: Mapping[str, Any] | str | None = None
    """A JSON Schema, or any value of `ask --schema`."""
    defaults: Mapping[str, str] = field(default_factory=dict[str, str])
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """As they are in the file; the terminal reads them as `-o` does."""

    @property
    def missing(self) -> list[str]:
        """The names of the variables without a default, without `$input`."""
        names = dict.fromkeys((*_names_in(self.system), *_names_in(self.prompt)))
        return [name for name in names if name not in self.defaults and name != INPUT]

    def with_values(self, values: Mapping[str, str]) -> Template:
        """With values for its variables; the system prompt is filled in at once."""
        made = replace(self, defaults={**self.defaults, **values})
        system = None if self.system is None else made._with(self.system, {})
        return replace(made, system=system)

    def filled(self, text: str) -> str:
        """The prompt with the text as `$input`, or followed by the text if it has no `$input`."""
        if self.prompt is None:
            return text
        if INPUT in _names_in(self.prompt):
            return self._with(self.prompt, {INPUT: text})
        said = self._with(self.prompt, {})
        return f"{said}\n\n{text}" if text.strip() else said

    def _with(self, text: str, values: Mapping[str, str]) -> str:
        known = {**self.defaults, **values}
        missing = [name for name in _names_in(text) if name not in known]
        if missing:
            msg = (
                f"template {self.name}: $input is only allowed in the prompt"
                if missing[0] == INPUT
                else f"template {self.name}: {missing[0]} has no value: give -p {missing[0]} VALUE"
            )
            raise ConfigError(msg)
        return string.Template(text).safe_substitute(known)


def _names_in(text: str | None) -> list[str]:
    return string.Template(text or "").get_identifiers()


# --- files


def templates_folder() -> Path:
    """The directory of the templates."""
    from dragoman.history.storage_urls import default_file

    return default_file().with_name("templates")


def template_path(name: str, folder: Path | None = None) -> Path:
    """The file of a template; raises if the name is invalid."""
    if not _NAME.fullmatch(name):
        msg = f"{name}: a template name may contain only letters, digits, _, . and -"
        raise ConfigError(msg)
    return (folder or templates_folder()) / f"{name}{SUFFIX}"


def template_names(folder: Path | None = None) -> list[str]:
    """The names of all templates."""
    found = (path.stem for path in (folder or templates_folder()).glob(f"*{SUFFIX}"))
    return sorted(name for name in found if _NAME.fullmatch(name))


def write_template(name: str, text: str, folder: Path | None = None) -> None:
    """Write a template's file, readable only by its owner: a prompt may be private."""
    from dragoman.history.storage.places import make_private_folder
    from dragoman.transport.atomic_files import write_atomically

    path = template_path(name, folder)
    make_private_folder(path.parent)
    write_atomically(path, text.encode(), is_private=True)


# --- reading and writing


def template_from(name: str, content: bytes) -> Template:
    """Parse a template; raises if it is invalid."""
    try:
        given = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        place = re.search(r"line \d+", str(error))
        msg = f"template {name}: is not TOML{f' ({place[0]})' if place else ''}"
        raise InvalidInputError(msg) from None
    _expect_fields(name, given)
    return Template(
        name=name,
        model=given.get("model"),
        base_url=given.get("base_url"),
        system=given.get("system"),
        prompt=given.get("prompt"),
        tools=tuple(given.get("tools", ())),
        schema=given.get("schema"),
        defaults={key: str(value) for key, value in given.get("defaults", {}).items()},
        settings=given.get("settings", {}),
    )


def _expect_fields(name: str, given: Mapping[str, Any]) -> None:
    from dragoman.model.spelling import did_you_mean

    for key, value in given.items():
        if key not in _FIELDS:
            near = did_you_mean(key, _FIELDS) or f"; the fields are {', '.join(_FIELDS)}"
            msg = f"template {name}: unknown field {key}{near}"
            raise InvalidInputError(msg)
        kinds: dict[str, tuple[type, ...]] = {
            "tools": (list,), "defaults": (dict,), "settings": (dict,), "schema": (str, dict),
        }  # fmt: skip
        if not isinstance(value, kinds.get(key, (str,))):
            msg = f"template {name}: {key} has the wrong type"
            raise InvalidInputError(msg)
    if not all(isinstance(tool, str) for tool in given.get("tools", ())):
        msg = f"template {name}: tools must be FILE.py or MODULE:NAME"
        raise InvalidInputError(msg)


def template_text(template: Template) -> str:
    """The file of a template."""
    fields: dict[str, Any] = {
        "model": template.model, "base_url": template.base_url, "system": template.system,
        "prompt": template.prompt, "tools": list(template.tools) or None, "schema": template.schema,
    }  # fmt: skip
    lines = [f"{name} = {_toml(value)}" for name, value in fields.items() if value is not None]
    for table, values in (("defaults", template.defaults), ("settings", template.settings)):
        if values:
            lines += ["", f"[{table}]"]
            lines += [f"{_key(name)} = {_toml(value)}" for name, value in values.items()]
    return "\n".join(lines) + "\n"


_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _toml(name)


def _toml(value: Any) -> str:
    """A value in TOML, which writes strings, numbers and lists as JSON does."""
    if isinstance(value, msgspec.Struct):
        value = json.dumps(msgspec.to_builtins(value))  # as parsed by -o
    elif isinstance(value, Mapping):
        value = json.dumps({**value})
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("\x7f", "\\u007f")
