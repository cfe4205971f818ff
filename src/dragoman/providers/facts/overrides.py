"""What users say of models, in place of what is listed: in a file, or in the program.

The file is named in `DRAGOMAN_FACTS`: TOML, or JSON where its name ends so. Keys are those of
`Prices`: `provider:model`, a model's name, or either with `*` in it.

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
_OTHERS_BUSINESS = frozenset({"provider", "model", "dialect"})
_RELEASE = r"([-@](\d{8}|\d{4}-\d{2}-\d{2}|\d{4}|00\d|latest))?\Z"


class Override(NamedTuple):
    """What a user says of some models."""

    key: str
    changes: Mapping[str, Any]
    size: Size
    dialect: str | None

    def names_at(self, places: Collection[str]) -> Iterator[str]:
        """What it calls models, at a provider that sounds like these names."""
        yield self.key
        head, colon, rest = self.key.partition(":")
        if colon and rest and normalised(head) in places:
            yield rest

    def family(self, name: str) -> Family:
        """The row for a provider's table."""
        size = self.size
        return Family(_pattern(name), self.changes, self.dialect, size.source, size.date)


_told: dict[str, Override] = {}
_version = count(1)
_latest = 0


def override_facts(overrides: Mapping[str, Mapping[str, Any] | None]) -> None:
    """Say what is true of models, in this process, in place of what is listed.

    ```python
    override_facts({
        "openai:gpt-7*": {"context_window": 2_000_000, "thinking.efforts": ("low", "high")},
    })
    ```

    A key is as in `Prices`. A row may have `context_window`, `max_output_tokens`, any flag of
    `Target` with its group, `dialect` (else it counts in all), `source` and `date`. A later row of
    the same key replaces the earlier one; None takes it away.
    """
    expect(overrides, Mapping, "overrides")
    read: dict[str, Override | None] = {}
    for key, given in overrides.items():
        expect(key, str, "a key of overrides")
        read[key.lower()] = None if given is None else _override(key, given, "override_facts")
    for name, found in read.items():
        if found is None:
            _told.pop(name, None)
        else:
            _told[name] = found
    global _latest  # noqa: PLW0603 - of the whole process, as what is told
    _latest = next(_version)


def stamp() -> Hashable:
    """Something that is another when users say something else."""
    path = os.environ.get(VARIABLE)
    if not path:
        return _latest
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return _latest, path
    return _latest, path, found.st_mtime_ns, found.st_size


def overrides() -> tuple[Override, ...]:
    """What users say, of the file and the program: an exact name counts more, then the first."""
    path = os.environ.get(VARIABLE)
    if not path and not _told:
        return ()
    found = {**({each.key: each for each in _in_file(path)} if path else {}), **_told}
    last_first = list(found.values())[::-1]  # the last row of a provider counts most
    return tuple(sorted(last_first, key=lambda each: "*" not in each.key))


def family_overrides(places: Collection[str]) -> tuple[tuple[str, Family], ...]:
    """What users say of a provider's models: the names, and the rows."""
    return tuple(
        (name, each.family(name)) for each in overrides() for name in each.names_at(places)
    )


def size_override(places: Collection[str], models: Collection[str], field: str) -> Size | None:
    """The row in which a user says a model's size, at a provider that sounds like these names."""
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
    return pattern_of(name).removesuffix(r"\Z").removesuffix(r"\z") + _RELEASE


@lru_cache(maxsize=256)
def _compiled(name: str) -> re.Pattern[str]:
    return re.compile(_pattern(name))


# --- the file


def _in_file(path: str) -> tuple[Override, ...]:
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        msg = f"the file that {VARIABLE} names is not there, or can't be read"
        raise ConfigError(msg) from None
    return _read(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=4)
def _read(path: str, _changed: int, _size: int) -> tuple[Override, ...]:
    import tomllib  # few have such a file

    is_json = path.lower().endswith(".json")
    try:
        raw = Path(path).read_bytes()
        rows = json.loads(raw) if is_json else tomllib.loads(raw.decode())
    except (OSError, ValueError, RecursionError):
        what = "JSON" if is_json else "TOML"
        msg = f"the file that {VARIABLE} names is not {what}, or can't be read"
        raise ConfigError(msg) from None
    if not isinstance(rows, dict):
        msg = f"the file that {VARIABLE} names must hold a table of models"
        raise ConfigError(msg)
    try:
        return tuple(
            _override(key, row, f"row {number} of the file that {VARIABLE} names")
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
    msg = f"{what} must be a number of tokens"
    raise InvalidInputError(msg)


def _flat(given: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    """The fields of a row; a table of a group is its flags."""
    for name, value in given.items():
        expect(name, str, f"a key in {where}")
        if name in GROUPS and isinstance(value, Mapping):
            for flag, inner in value.items():
                yield f"{name}.{flag}", inner
        else:
            yield name, value


def _converted(name: str, value: Any, where: str) -> Any:
    """The value of a flag, of the flag's own type: a list is a tuple."""
    if name in GROUPS or name in _OTHERS_BUSINESS or not is_flag(name):
        known = ", ".join((*_SIZES, *_WORDS))
        msg = f"{where} says something that is no fact: there are {known}, and flags of Target"
        raise InvalidInputError(msg)
    group, _, flag = name.rpartition(".")
    try:
        return msgspec.convert(value, _types(group)[flag])
    except (msgspec.ValidationError, TypeError, ValueError):
        pass
    msg = f"{where} has a value that {name} can't have"
    raise InvalidInputError(msg)


@lru_cache(maxsize=16)
def _types(group: str) -> dict[str, Any]:
    kind = get_type_hints(Target)[group] if group else Target
    return get_type_hints(kind)
