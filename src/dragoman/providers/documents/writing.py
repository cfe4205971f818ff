"""Documents in the form that a target reads, and what it could not say of them."""

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
_MODEL_NOTE = Loss("model", "a request there has it in its address; kept here in the field model")
_STREAM_NOTE = Loss("stream", "a request there has it in its address, and the body has no place")


class Written(NamedTuple):
    """A document as it goes out."""

    text: bytes
    losses: tuple[Loss, ...] = ()
    """What it could not say."""
    repairs: tuple[Repair, ...] = ()
    """What was changed so that the target accepts it."""
    notes: tuple[Loss, ...] = ()
    """What must be said elsewhere."""


class Destination:
    """What documents are turned into: a dialect's, fitted to a target, or our own."""

    def __init__(self, name: str) -> None:
        self._named = None if name == CANONICAL else Named(name)

    def text_of(self, value: Conversation) -> Written:
        """A document as JSON, and what is to be reported about it."""
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
    """What the target has outside of the body (Gemini: the model, and whether to stream)."""
    if request.model is None or "model" in encoded.body:
        return ()
    return (_MODEL_NOTE, _STREAM_NOTE) if request.stream else (_MODEL_NOTE,)


def _with_model(encoded: Encoded) -> dict[str, Any]:
    """The body with the model that its path names, so that the next conversion still has it."""
    found = _IN_PATH.search(encoded.path or "")
    return encoded.body if found is None else {"model": unquote(found[1]), **encoded.body}
