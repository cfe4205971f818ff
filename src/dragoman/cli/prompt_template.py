"""Templates: named prompts with `$input`, a system prompt, a model and settings.

They are TOML files in the user's data directory:

```toml
model = "anthropic:claude-sonnet-4-5"
system = "Answer in one sentence."
prompt = "Summarise this in $language: $input"

[defaults]
language = "English"

[settings]
temperature = 0.2
```
"""

from __future__ import annotations

import json
import re
import string
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.cli.exit_codes import BROKEN, FILES, USAGE, Ending

if TYPE_CHECKING:
    from dragoman.cli.ask_options import Options

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_FIELDS = ("model", "base_url", "system", "prompt", "tools", "schema", "defaults", "settings")
INPUT = "input"
DEFAULT = "default"
"""The template that is used if neither a model nor a template is named."""


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
            raise Ending(USAGE, f"template {self.name}: give -p {missing[0]} VALUE"
                         if missing[0] != INPUT else
                         f"template {self.name}: $input is only allowed in the prompt")  # fmt: skip
        return string.Template(text).safe_substitute(known)


def _names_in(text: str) -> list[str]:
    return string.Template(text).get_identifiers()


# --- files


def templates_folder() -> Path:
    """The directory of the templates."""
    from dragoman.history.storage_urls import default_file

    return default_file().with_name("templates")


def template_path(name: str) -> Path:
    """The file of a template; exits if the name is invalid."""
    if not _NAME.fullmatch(name):
        raise Ending(USAGE, f"{name}: a template name may contain only letters, digits, _, . and -")
    return templates_folder() / f"{name}.toml"


def template_names() -> list[str]:
    """The names of all templates."""
    found = (path.stem for path in templates_folder().glob("*.toml"))
    return sorted(name for name in found if _NAME.fullmatch(name))


def default_template() -> Template | None:
    """The template `default`, if it exists."""
    if not template_path(DEFAULT).is_file():
        return None
    return load_template(DEFAULT).with_values({})


def load_template(name: str) -> Template:
    """A template by name or file path; exits if it can't be used."""
    path = Path(name) if name.endswith(".toml") else template_path(name)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        from dragoman.model.spelling import did_you_mean

        near = did_you_mean(name, template_names())
        raise Ending(USAGE, f"there is no template {name}{near or '; `dragoman templates` lists'}"
                     f"{'' if near else ' them'}") from None  # fmt: skip
    except OSError as error:
        raise Ending(FILES, f"{path}: {error.strerror or type(error).__name__}") from None
    return template_from(path.stem, content)


def template_from(name: str, content: bytes) -> Template:
    """Parse a template; exits if it is invalid."""
    try:
        given = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        place = re.search(r"line \d+", str(error))
        raise Ending(BROKEN, f"template {name}: is not TOML{f' ({place[0]})' if place else ''}"
                     ) from None  # fmt: skip
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
        settings=_settings(name, given.get("settings", {})),
    )


def _expect_fields(name: str, given: Mapping[str, Any]) -> None:
    from dragoman.model.spelling import did_you_mean

    for key, value in given.items():
        if key not in _FIELDS:
            near = did_you_mean(key, _FIELDS) or f"; the fields are {', '.join(_FIELDS)}"
            raise Ending(BROKEN, f"template {name}: unknown field {key}{near}")
        kinds: dict[str, tuple[type, ...]] = {
            "tools": (list,), "defaults": (dict,), "settings": (dict,), "schema": (str, dict),
        }  # fmt: skip
        if not isinstance(value, kinds.get(key, (str,))):
            raise Ending(BROKEN, f"template {name}: {key} has the wrong type")
    if not all(isinstance(tool, str) for tool in given.get("tools", ())):
        raise Ending(BROKEN, f"template {name}: tools must be FILE.py or MODULE:NAME")


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


def template_text(given: Options, model: str | None, prompt: str) -> str:
    """The command line as a template file."""
    fields: dict[str, Any] = {
        "model": model, "base_url": given.base_url, "system": given.instructions,
        "prompt": prompt or None, "tools": list(given.tool_names) or None, "schema": given.schema,
    }  # fmt: skip
    lines = [f"{name} = {_toml(value)}" for name, value in fields.items() if value is not None]
    if given.settings:
        lines += ["", "[settings]"]
        lines += [f"{name} = {_toml(value)}" for name, value in given.settings.items()]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """A value in TOML, which writes strings, numbers and lists as JSON does."""
    if isinstance(value, msgspec.Struct):
        value = json.dumps(msgspec.to_builtins(value))  # as parsed by -o
    elif isinstance(value, Mapping):
        value = json.dumps({**value})
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("\x7f", "\\u007f")
