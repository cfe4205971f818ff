"""Sessions as they were sealed before records were bound to their positions: frozen."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dragoman.history.storage.protocol import Row, Session
from dragoman.history.storage.sealed import SealedStorage
from dragoman.history.storage.sealed.keyring import message_bound, window_bound


def sealed_then(
    storage: SealedStorage, session: Session, rows: Sequence[Row]
) -> tuple[Session, list[Row]]:
    """A session as it was sealed before records were bound to their positions."""
    keyring, identity = storage._records.keyring, session.identity

    def sealed(row: Row) -> Row:
        body = keyring.seal("SealedMessage", row.body, message_bound(identity, row, None))
        return msgspec.structs.replace(row, body=body)

    window = session.window
    if window is not None:
        window = keyring.seal("SealedWindow", window, window_bound(identity, "window", None))
    return msgspec.structs.replace(session, window=window), [sealed(row) for row in rows]
