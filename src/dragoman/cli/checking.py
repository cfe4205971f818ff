"""Checks documents against a target's rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dragoman.cli.exit_codes import fault
from dragoman.errors import DragomanError
from dragoman.providers.documents.batches import Batch
from dragoman.providers.documents.checking import Checker
from dragoman.wire.violations import Violation


class Checked(NamedTuple):
    """The findings in a document, or why it could not be read."""

    name: str
    line: int
    document: int
    numbered: bool
    """Whether to name documents by number: an array may have them all on one line."""
    violations: list[Violation]
    problem: str | None = None

    @property
    def place(self) -> str:
        """The location of the document, for messages."""
        where = f"{self.name}:{self.line}"
        return f"{where} document {self.document}" if self.numbered else where


def checked(checker: Checker, batches: Iterable[Batch]) -> Iterator[Checked]:
    """The findings in each document."""
    number = 0
    for batch in batches:
        for line, raw, trouble in batch.documents():
            number += 1
            found: list[Violation] = []
            problem = trouble
            if problem is None:
                try:
                    found = checker.violations(raw)
                except DragomanError as error:
                    problem = str(error)
                except Exception as error:  # noqa: BLE001 - the other documents are checked still
                    problem = fault(error)
            yield Checked(batch.name, line, number, batch.of_array, found, problem)
