"""Problems in a configuration, with their position."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from dragoman.errors import ConfigError


class Problem(msgspec.Struct, frozen=True):
    """One problem, and its position if it is in a file."""

    text: str
    path: Path | None = None
    line: int | None = None
    """Counted from one."""
    column: int | None = None
    """In characters, counted from one."""

    def __str__(self) -> str:
        where = (str(self.path) if self.path else None, self.line, self.column)
        position = ":".join(str(each) for each in where if each is not None)
        return f"{position}: {self.text}" if position else self.text


class ConfigFileError(ConfigError):
    """The configuration is invalid; the message has a line for each of its `problems`.

    `path`, `line` and `column` are those of the first problem.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)
        first = self.problems[0] if self.problems else Problem("")
        self.path, self.line, self.column = first.path, first.line, first.column
