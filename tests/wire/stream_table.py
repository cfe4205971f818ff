"""The test streams of all dialects, as one table: see `tests.wire.streams.Streams`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest

import dragoman
from tests.wire.streams import Streams

TABLE: dict[str, Streams] = {
    name: streams
    for dialect in dragoman.dialects()
    for name, streams in import_module(
        f"tests.wire.{dialect.replace('-', '_')}.streams"
    ).TABLE.items()
}
"""By the dialect's name, which a format may follow."""


@dataclass(frozen=True)
class Case:
    """One of the streams in the table."""

    row: str
    name: str

    @property
    def its(self) -> Streams:
        """All streams of its dialect and format."""
        return TABLE[self.row]

    @property
    def body(self) -> Any:
        """The plain body."""
        return self.its.bodies[self.name]

    @property
    def frames(self) -> Sequence[Any]:
        """The frames of the stream."""
        return self.its.frames[self.name]

    @property
    def stream(self) -> bytes:
        """The stream."""
        return self.its.written(self.frames)


EVERY = pytest.mark.parametrize(
    "case",
    [
        pytest.param(Case(row, name), id=f"{row}-{name}")
        for row, its in TABLE.items()
        for name in its.bodies
    ],
)
"""A test that runs on every stream."""

ROWS = pytest.mark.parametrize("row", TABLE)
"""A test that runs on every dialect, in each format."""
