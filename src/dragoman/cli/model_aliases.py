"""Short names for models: `fast` for `openai:gpt-5-mini`, and `default` for the default model.

They are stored in `aliases.json` in the user's data directory: each name maps to `provider:model`,
to another alias, or to `{"model": …, "base_url": …}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.cli.exit_codes import BROKEN, FILES, USAGE, Ending

DEFAULT = "default"
"""The alias of the default model."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


class Chosen(NamedTuple):
    """A model, and its base URL if not the provider's default."""

    name: str
    base_url: str | None = None
    is_agreed: bool = False
    """Whether the user has seen what it is, and has agreed to download it."""


def aliases_path() -> Path:
    """The path of the aliases file."""
    from dragoman.history.storage_urls import default_file

    return default_file().with_name("aliases.json")


def expect_alias(name: str) -> str:
    """The name if it is a valid alias; exits if not."""
    if not _NAME.fullmatch(name):
        raise Ending(USAGE, f"{name}: an alias may contain only letters, digits, _, . and -")
    return name


def aliases() -> dict[str, Chosen]:
    """All aliases by name; exits if the file can't be read."""
    path = aliases_path()
    try:
        given: Any = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise Ending(FILES, f"{path}: {error.strerror or type(error).__name__}") from None
    except (ValueError, RecursionError):
        raise Ending(BROKEN, f"{path}: is not JSON") from None
    if not isinstance(given, dict):
        raise Ending(BROKEN, f"{path}: must be a JSON object")
    return {name: _read(path, name, value) for name, value in given.items()}


def _read(path: Path, name: str, value: Any) -> Chosen:
    fields = {"model": value} if isinstance(value, str) else value
    match fields:
        case {"model": str() as model, **rest} if _NAME.fullmatch(name) and set(rest) <= {
            "base_url"
        }:
            base_url = rest.get("base_url")
            if base_url is None or isinstance(base_url, str):
                return Chosen(model, base_url)
        case _:
            pass
    raise Ending(BROKEN, f'{path}: an alias must be a model name or {{"model": …, "base_url": …}}')


def write_aliases(found: dict[str, Chosen]) -> None:
    """Write the file, readable only by its owner."""
    from dragoman.cli.atomic_files import write_private

    fields = {
        name: each.name
        if each.base_url is None
        else {"model": each.name, "base_url": each.base_url}
        for name, each in sorted(found.items())
    }
    write_private(aliases_path(), json.dumps(fields, ensure_ascii=False, indent=2) + "\n")


def resolved(name: str, known: Mapping[str, Chosen] | None = None) -> Chosen:
    """Resolve an alias (of `known`, or of the user's); other names are returned unchanged.

    A name with a colon is never an alias. A cycle of aliases exits with an error.
    """
    if known is None:
        known = {} if ":" in name else aliases()
    seen = [name]
    chosen = Chosen(name)
    while chosen.name in known:
        there = known[chosen.name]
        chosen = Chosen(there.name, there.base_url or chosen.base_url)
        if chosen.name in seen:
            raise Ending(USAGE, f"the alias {name} refers to itself: {' → '.join(seen)}")
        seen.append(chosen.name)
    return chosen


def default_model() -> str | None:
    """The alias `default`, if it is set."""
    return DEFAULT if DEFAULT in aliases() else None
