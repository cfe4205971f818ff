"""Checks documents against a target's rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import chain
from typing import NamedTuple

from dragoman.cli.documents import read_session
from dragoman.cli.exit_codes import fault
from dragoman.cli.workers import outcomes
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


class Check(NamedTuple):
    """The work on each batch: to check its documents against a target's rules."""

    target: str

    def begun(self) -> Callable[[Batch], list[Checked]]:
        """Prepares the work, once in each process."""
        checker = Checker(self.target, read_session)
        return lambda batch: [*_checked(checker, batch)]


def checked(target: str, batches: Iterator[Batch], jobs: int = 1) -> Iterator[Checked]:
    """The findings in each document, in order."""
    number = 0
    with closing(outcomes(Check(target), batches, jobs)) as results:
        for found in chain.from_iterable(results):
            number += 1
            yield found._replace(document=number)


def _checked(checker: Checker, batch: Batch) -> Iterator[Checked]:
    for line, raw, trouble in batch.documents():
        found: list[Violation] = []
        problem = trouble
        if problem is None:
            try:
                found = checker.violations(raw)
            except DragomanError as error:
                problem = str(error)
            except Exception as error:  # noqa: BLE001 - the other documents are checked still
                problem = fault(error)
        yield Checked(batch.name, line, 0, batch.of_array, found, problem)
