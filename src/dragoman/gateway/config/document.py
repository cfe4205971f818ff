"""A TOML file: its data, and the problems found in it with their line and column."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from dragoman.gateway.config.positions import Path as KeyPath
from dragoman.gateway.config.positions import Positions
from dragoman.gateway.config.problems import ConfigFileError, Problem
from dragoman.model.spelling import did_you_mean
from dragoman.wire.key_masking import masked

_MAX_BYTES = 1024 * 1024
_MAX_PROBLEMS = 100  # in one report
_AT = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)\s*\Z")
_QUOTED = re.compile(r"\s*(\(.*\)|'[^']{4,}'|\"[^\"]{4,}\")")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,40}", re.ASCII)

Check = Callable[["Document", KeyPath, Any], Any]
"""Checks a value: returns the parsed value, or notes a problem and returns `WRONG`."""

WRONG: Any = object()
"""Stands for an invalid value whose problem was noted."""


class Document:
    """A configuration file, its data and its problems.

    `fields` reads a table; problems are collected, and `finish` raises all of them at once.
    """

    def __init__(self, path: Path | None, text: str = "") -> None:
        self.path = path
        self.warnings: list[Problem] = []
        self._problems: list[Problem] = []
        text = text.replace("\r\n", "\n")
        self._positions = Positions(text)
        if self._positions.too_deep is not None:
            raise ConfigFileError([self._at(self._positions.too_deep, "this is nested too deeply")])
        try:
            self.data: dict[str, Any] = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            problem = self._syntax(str(error), text)
        else:
            return
        raise ConfigFileError([problem])

    @classmethod
    def read(cls, path: Path) -> Document:
        """Read a document from a file."""
        try:
            with path.open("rb") as file:
                raw = file.read(_MAX_BYTES + 1)
            if len(raw) > _MAX_BYTES:
                problem = "the file is larger than 1 MiB"
            else:
                return cls(path, raw.decode("utf-8-sig"))
        except UnicodeDecodeError:
            problem = "the file is not encoded in UTF-8"
        except FileNotFoundError:
            problem = "there is no such file"
        except (OSError, ValueError) as error:  # ValueError: a null byte in the path
            problem = f"the file can't be read ({type(error).__name__})"
        raise ConfigFileError([Problem(problem, path)])

    # --- problems

    def problem(self, path: KeyPath, text: str, *, at_key: bool = False) -> Any:
        """Note a problem with a value or its key; returns `WRONG`."""
        self._problems.append(self._placed(path, text, at_key=at_key))
        return WRONG

    def warn(self, path: KeyPath, text: str) -> None:
        """Note something valid that is probably unintended."""
        self.warnings.append(self._placed(path, text, at_key=False))

    def adopt(self, other: Document) -> None:
        """Take over the problems of another document."""
        self._problems += other._problems
        self.warnings += other.warnings

    def finish(self) -> None:
        """Raise all problems in order of lines, if there are any."""
        if self._problems:
            order = sorted(self._problems, key=lambda each: (each.line or 0, each.column or 0))
            raise ConfigFileError(order[:_MAX_PROBLEMS])

    def _placed(self, path: KeyPath, text: str, *, at_key: bool) -> Problem:
        if self.path is None:  # no file: an environment variable, by name
            return Problem(": ".join([*map(str, path[:1]), text]))
        line, column = self._positions.place_of(path, at_key=at_key)
        return Problem(text, self.path, line, column)

    def _syntax(self, message: str, text: str) -> Problem:
        """A syntax error of tomllib, without its quotes of the text."""
        found = _AT.search(message)
        reason = _QUOTED.sub("", message[: found.start()] if found else message)
        reason = reason[:1].lower() + reason[1:].rstrip(". ")
        if found is None:
            return Problem("a value is out of range", self.path)
        reason = f"this is not valid TOML: {reason}"
        if found[1] is None:
            return self._at(len(text), reason)
        return Problem(reason, self.path, int(found[1]), int(found[2]))

    def _at(self, offset: int, text: str) -> Problem:
        return Problem(text, self.path, *self._positions.line_and_column(offset))

    # --- tables

    def tables(self, name: str) -> tuple[str, ...]:
        """The names of the subtables of a table, such as `lab` of `[providers.lab]`."""
        found = self.data.get(name)
        return tuple(found) if isinstance(found, dict) else ()

    def fields(
        self,
        path: KeyPath,
        table: Any,
        checks: Mapping[str, Check],
        *,
        required: Iterable[str] = (),
        refused: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Return the valid fields of a table; note problems with the others."""
        if not isinstance(table, dict):
            self.problem(path, f"this must be a table with the fields {', '.join(checks)}")
            return {}
        found: dict[str, Any] = {}
        for name, value in table.items():
            kept = self._field((*path, name), name, value, checks, refused or {})
            if kept is not WRONG:
                found[name] = kept
        for name in required:
            if name not in table:
                self.problem(path, f"{name} is missing", at_key=True)
        return found

    def _field(
        self, path: KeyPath, name: str, value: Any, checks: Mapping[str, Check],
        refused: Mapping[str, str],
    ) -> Any:  # fmt: skip
        check = checks.get(name)
        if check is not None:
            return check(self, path, value)
        letters = re.sub(r"[^a-z]", "", name.lower())
        reason = refused.get(letters)
        if reason is None:
            near = did_you_mean(name, checks)
            reason = f"unknown field{shown(name)}{near}; valid fields: {', '.join(checks)}"
        return self.problem(path, reason, at_key=True)


def shown(name: str) -> str:
    """A name from the file, to quote in a message; empty if it may be a secret."""
    return f" {name}" if _NAME.fullmatch(name) and masked(name) == name else ""
