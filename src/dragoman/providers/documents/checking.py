"""Checks documents against the rules of a target."""

from __future__ import annotations

from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.interop.chat_exports import format_of
from dragoman.model.jsontext import loads
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.providers.documents.naming import Named
from dragoman.providers.documents.reading import NO_DOCUMENT, Reader, ReadSession, refuse_others
from dragoman.providers.documents.sessions import is_session
from dragoman.wire.documents import is_canonical, is_response
from dragoman.wire.violations import Violation

_ABOUT_REQUESTS = "this is a response; only requests can be checked"


class Checker:
    """Finds what a target would refuse in a document."""

    def __init__(self, name: str, read_session: ReadSession | None = None) -> None:
        self._named = Named(name)
        self._reader = Reader(read_session=read_session)

    def violations(self, raw: bytes) -> list[Violation]:
        """The violations in a request, or in the messages of a history.

        A canonical document is checked as it would be sent.
        """
        if is_session(raw):
            return self._of_ours(raw)
        wire = loads(raw)
        if isinstance(wire, list):
            return self._of_history(wire)
        if not isinstance(wire, dict):
            raise InvalidInputError(NO_DOCUMENT)
        if is_canonical(wire) or format_of(wire) is not None:
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
        # Not a request: rules about other fields than messages don't apply.
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
