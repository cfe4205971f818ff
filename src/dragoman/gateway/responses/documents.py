"""Stores the gateway's JSON documents in a history store, each as a message in a session.

A history store holds messages only. The gateway's own documents (responses, items, event streams)
are JSON text in an opaque part, so that exports, checks and retention apply to them as well.
"""

from __future__ import annotations

from time import time
from typing import Any, Final

from dragoman.errors import Corrupt
from dragoman.history.records import body_of, message_in
from dragoman.history.storage.protocol import Entry, Row
from dragoman.model.jsontext import dumps, loads
from dragoman.model.messages import Message
from dragoman.model.parts import Opaque
from dragoman.model.roles import Role

_KIND: Final = "dragoman.gateway"


def entry(id: str, document: Any, *, at: float | None = None) -> Entry:
    """Returns the entry for a document; the id must be unique in its session."""
    text = dumps(document).decode()
    message = Message(Role.ASSISTANT, (Opaque(_KIND, text),), id=id)
    return Entry(id, body_of(message), time() if at is None else at)


def document(row: Row) -> Any:
    """Returns the document in a row; raises `Corrupt` if there is none."""
    parts = message_in(row).parts
    if len(parts) != 1 or not isinstance(parts[0], Opaque) or type(parts[0].payload) is not str:
        msg = "the stored record is not a gateway document"
        raise Corrupt(msg)
    return loads(parts[0].payload)
