"""Writes documents for a target, and reports what was lost."""

from __future__ import annotations

import re
from typing import Any, NamedTuple
from urllib.parse import unquote

from dragoman.model.jsontext import dumps
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.providers.documents.naming import Named
from dragoman.providers.documents.reading import CANONICAL
from dragoman.wire.documents import Conversation
from dragoman.wire.encoded import Encoded
from dragoman.wire.losses import Loss, Repair

_IN_PATH = re.compile(r"/(models/[^/:?]+)")
_MODEL_NOTE = Loss("model", "this API has the model in the URL; kept in the field model")
_STREAM_NOTE = Loss("stream", "this API has it in the URL; it can't be kept in the body")


class Written(NamedTuple):
    """A written document with its reports."""

    text: bytes
    losses: tuple[Loss, ...] = ()
    """What was lost."""
    repairs: tuple[Repair, ...] = ()
    """What was changed so that the target accepts it."""
    notes: tuple[Loss, ...] = ()
    """What is not part of the body."""


class Destination:
    """The output format of documents: a dialect, fitted to a target, or canonical."""

    def __init__(self, name: str) -> None:
        self._named = None if name == CANONICAL else Named(name)

    def text_of(self, value: Conversation) -> Written:
        """Write a document as JSON, with its reports."""
        named = self._named
        if named is None:
            return Written(value.to_json())
        if isinstance(value, Response):
            spoken, _ = named.fitting(None)
            encoded = spoken.encode_response(value)
            return Written(dumps(encoded.body), encoded.losses)
        request = value if isinstance(value, Request) else Request(messages=tuple(value))
        spoken, target = named.fitting(request.model)
        if named.model is not None:
            request = request.replace(model=named.model)
        encoded = spoken.encode_request(request, target)
        notes = _notes(request, encoded)
        body = _with_model(encoded) if notes else encoded.body
        return Written(dumps(body), encoded.losses, encoded.repairs, notes)


def _notes(request: Request, encoded: Encoded) -> tuple[Loss, ...]:
    """Notes about what the target has outside of the body (Gemini: model and streaming)."""
    if request.model is None or "model" in encoded.body:
        return ()
    return (_MODEL_NOTE, _STREAM_NOTE) if request.stream else (_MODEL_NOTE,)


def _with_model(encoded: Encoded) -> dict[str, Any]:
    """The body with the model from its path, so that it is kept for the next conversion."""
    found = _IN_PATH.search(encoded.path or "")
    return encoded.body if found is None else {"model": unquote(found[1]), **encoded.body}
