"""Documents of the gateway in a history store: each is a row of a session, and a message to it.

A store keeps messages. What the gateway keeps beside them (answers, items, streams) is the payload
of an opaque part, as JSON text: exports, checks and retention treat it like everything else.
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
    """A document as it is stored, under an id that is unique in its session."""
    text = dumps(document).decode()
    message = Message(Role.ASSISTANT, (Opaque(_KIND, text),), id=id)
    return Entry(id, body_of(message), time() if at is None else at)


def document(row: Row) -> Any:
    """The document in a row; raises `Corrupt` where there is none."""
    parts = message_in(row).parts
    if len(parts) != 1 or not isinstance(parts[0], Opaque) or type(parts[0].payload) is not str:
        msg = "the stored record is no document of the gateway"
        raise Corrupt(msg)
    return loads(parts[0].payload)
