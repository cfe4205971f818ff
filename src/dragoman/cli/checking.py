"""Checking documents against what a target takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from dragoman.cli.document_kinds import NO_DOCUMENT, Reader, refuse_others
from dragoman.cli.documents import Batch
from dragoman.cli.exit_codes import fault
from dragoman.cli.targets import Named
from dragoman.errors import DragomanError, InvalidInputError
from dragoman.model.jsontext import loads
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.wire.documents import is_canonical, is_response
from dragoman.wire.violations import Violation

_ABOUT_REQUESTS = "this is a response; checks are about requests"


class Checked(NamedTuple):
    """What was found in a document, or why it could not be looked at."""

    name: str
    line: int
    document: int
    numbered: bool
    """Whether documents are told by their numbers: an array may have all on one line."""
    violations: list[Violation]
    problem: str | None = None

    @property
    def place(self) -> str:
        """Where the document is, for people."""
        where = f"{self.name}:{self.line}"
        return f"{where} document {self.document}" if self.numbered else where


class Checker:
    """Says what a target would refuse in a document."""

    def __init__(self, name: str) -> None:
        self._named = Named(name)
        self._reader = Reader("canonical")

    def violations(self, raw: bytes) -> list[Violation]:
        """What is wrong with a request, or with the messages of a history.

        A document of ours is checked as it would be sent.
        """
        wire = loads(raw)
        if isinstance(wire, list):
            return self._of_history(wire)
        if not isinstance(wire, dict):
            raise InvalidInputError(NO_DOCUMENT)
        if is_canonical(wire):
            return self._of_ours(raw)
        model = wire.get("model")
        spoken, target = self._named.fitting(model if isinstance(model, str) else None)
        if is_response(wire, spoken.messages_field):
            raise InvalidInputError(_ABOUT_REQUESTS)
        if spoken.messages_field not in wire:
            refuse_others(wire)
        return spoken.check(wire, target=target)

    def _of_history(self, items: list[Any]) -> list[Violation]:
        spoken, target = self._named.fitting(None)
        field = spoken.messages_field
        found = spoken.check({field: items}, target=target)
        # It is no request: what a request needs besides its messages is not asked of it.
        return [violation for violation in found if violation.path.startswith(field)]

    def _of_ours(self, raw: bytes) -> list[Violation]:
        value = self._reader.read(raw).value
        if isinstance(value, Response):
            raise InvalidInputError(_ABOUT_REQUESTS)
        request = value if isinstance(value, Request) else Request(messages=tuple(value))
        spoken, target = self._named.fitting(request.model)
        if self._named.model is not None:
            request = request.replace(model=self._named.model)
        encoded = spoken.encode_request(request, target)
        return spoken.check(encoded.body, target=target)


def checked(checker: Checker, batches: Iterable[Batch]) -> Iterator[Checked]:
    """What was found in each document."""
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
