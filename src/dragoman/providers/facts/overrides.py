"""User overrides of facts about models, in a file or in the program.

The path of the file is in `DRAGOMAN_FACTS`: TOML, or JSON if the name ends in `.json`. Keys are as
in `Prices`: `provider:model`, a model name, or either with `*` as a wildcard.

```toml
["openai:gpt-7*"]
context_window = 2_000_000
thinking.efforts = ["low", "high", "max"]
source = "release notes"
date = 2026-12-01
```
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Hashable, Iterator, Mapping
from datetime import date
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import msgspec

from dragoman.errors import ConfigError, InvalidInputError
from dragoman.model.spelling import normalised
from dragoman.model.value import expect
from dragoman.providers.facts.names import pattern_of
from dragoman.providers.facts.sizes import Size
from dragoman.providers.family import Family
from dragoman.wire.target import GROUPS, Target, is_flag

VARIABLE = "DRAGOMAN_FACTS"
_SIZES = ("context_window", "max_output_tokens")
_WORDS = ("source", "date", "dialect")
_NOT_OVERRIDABLE = frozenset({"provider", "model", "dialect"})
_RELEASE = r"([-@](\d{8}|\d{4}-\d{2}-\d{2}|\d{4}|00\d|latest))?\Z"


class Override(NamedTuple):
    """A user override for some models."""

    key: str
    changes: Mapping[str, Any]
    size: Size
    dialect: str | None

    def names_at(self, places: Collection[str]) -> Iterator[str]:
        """The model name of the key, if it applies to a provider with these names."""
        yield self.key
        head, colon, rest = self.key.partition(":")
        if colon and rest and normalised(head) in places:
            yield rest

    def family(self, name: str) -> Family:
        """The override as a row of a provider's table."""
        size = self.size
        return Family(_pattern(name), self.changes, self.dialect, size.source, size.date)


_registered: dict[str, Override] = {}
_version = count(1)
_latest = 0


def override_facts(overrides: Mapping[str, Mapping[str, Any] | None]) -> None:
    """Override facts about models in this process.

    ```python
    override_facts({
        "openai:gpt-7*": {"context_window": 2_000_000, "thinking.efforts": ("low", "high")},
    })
    ```

    Keys are as in `Prices`. A row may have `context_window`, `max_output_tokens`, any flag of
    `Target` with its group, `dialect` (the default is all), `source` and `date`. A later row with
    the same key replaces the earlier one; None removes it.
    """
    expect(overrides, Mapping, "overrides")
    read: dict[str, Override | None] = {}
    for key, given in overrides.items():
        expect(key, str, "a key of overrides")
        read[key.lower()] = None if given is None else _override(key, given, "override_facts")
    for name, found in read.items():
        if found is None:
            _registered.pop(name, None)
        else:
            _registered[name] = found
    global _latest  # noqa: PLW0603 - process-wide, like the overrides
    _latest = next(_version)


def stamp() -> Hashable:
    """A value that changes when overrides change."""
    path = os.environ.get(VARIABLE)
    if not path:
        return _latest
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return _latest, path
    return _latest, path, found.st_mtime_ns, found.st_size


def overrides() -> tuple[Override, ...]:
    """The overrides of the file and the program; exact names take precedence, then the first."""
    path = os.environ.get(VARIABLE)
    if not path and not _registered:
        return ()
    found = {**({each.key: each for each in _in_file(path)} if path else {}), **_registered}
    last_first = list(found.values())[::-1]  # the last row of a provider counts most
    return tuple(sorted(last_first, key=lambda each: "*" not in each.key))


def family_overrides(places: Collection[str]) -> tuple[tuple[str, Family], ...]:
    """The overrides for a provider's models: names and rows."""
    return tuple(
        (name, each.family(name)) for each in overrides() for name in each.names_at(places)
    )


def size_override(places: Collection[str], models: Collection[str], field: str) -> Size | None:
    """The overridden size of a model, at a provider with these names."""
    for each in reversed(overrides()):
        if getattr(each.size, field) is None:
            continue
        for name in each.names_at(places):
            pattern = _compiled(name)
            if any(pattern.match(model.lower()) for model in models):
                size: Size = each.size
                return size
    return None


def _pattern(name: str) -> str:
    return pattern_of(name) + _RELEASE


@lru_cache(maxsize=256)
def _compiled(name: str) -> re.Pattern[str]:
    return re.compile(_pattern(name))


# --- the file


def _in_file(path: str) -> tuple[Override, ...]:
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        msg = f"the file in {VARIABLE} does not exist or can't be read"
        raise ConfigError(msg) from None
    return _read(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=4)
def _read(path: str, _changed: int, _size: int) -> tuple[Override, ...]:
    import tomllib  # rarely needed

    is_json = path.lower().endswith(".json")
    try:
        raw = Path(path).read_bytes()
        rows = json.loads(raw) if is_json else tomllib.loads(raw.decode())
    except (OSError, ValueError, RecursionError):
        what = "JSON" if is_json else "TOML"
        msg = f"the file in {VARIABLE} is not valid {what}, or can't be read"
        raise ConfigError(msg) from None
    if not isinstance(rows, dict):
        msg = f"the file in {VARIABLE} must contain a table of models"
        raise ConfigError(msg)
    try:
        return tuple(
            _override(key, row, f"row {number} of the file in {VARIABLE}")
            for number, (key, row) in enumerate(rows.items(), 1)
        )
    except InvalidInputError as error:
        raise ConfigError(str(error)) from None


# --- a row


def _override(key: str, given: object, where: str) -> Override:
    expect(given, Mapping, where)
    flat = dict(_flat(given, where))  # type: ignore[arg-type]
    words = {name: flat.pop(name, None) for name in _WORDS}
    if isinstance(words["date"], date):
        words["date"] = words["date"].isoformat()
    for name, word in words.items():
        expect(word, (str, type(None)), f"{name} in {where}")
    sizes = {name: _tokens(flat.pop(name, None), f"{name} in {where}") for name in _SIZES}
    changes = {name: _converted(name, value, where) for name, value in flat.items()}
    size = Size(
        _pattern(key.lower()),
        sizes["context_window"],
        sizes["max_output_tokens"],
        words["source"] or "the user",
        words["date"] or "",
    )
    return Override(key.lower(), changes, size, words["dialect"])


def _tokens(value: object, what: str) -> int | None:
    if value is None or (type(value) is int and value > 0):
        return value
    msg = f"{what} must be a positive integer number of tokens"
    raise InvalidInputError(msg)


def _flat(given: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    """The fields of a row; a nested table holds the flags of a group."""
    for name, value in given.items():
        expect(name, str, f"a key in {where}")
        if name in GROUPS and isinstance(value, Mapping):
            for flag, inner in value.items():
                yield f"{name}.{flag}", inner
        else:
            yield name, value


def _converted(name: str, value: Any, where: str) -> Any:
    """Convert the value of a flag to the flag's type: a list becomes a tuple."""
    if name in GROUPS or name in _NOT_OVERRIDABLE or not is_flag(name):
        known = ", ".join((*_SIZES, *_WORDS))
        msg = f"{where} has an unknown field; allowed are {known}, and flags of Target"
        raise InvalidInputError(msg)
    group, _, flag = name.rpartition(".")
    try:
        return msgspec.convert(value, _types(group)[flag])
    except (msgspec.ValidationError, TypeError, ValueError):
        pass
    msg = f"{where} has an invalid value for {name}"
    raise InvalidInputError(msg)


@lru_cache(maxsize=16)
def _types(group: str) -> dict[str, Any]:
    kind = get_type_hints(Target)[group] if group else Target
    return get_type_hints(kind)
