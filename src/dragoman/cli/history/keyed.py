"""An encrypted store that also gives access to the store below it."""

from __future__ import annotations

from dragoman.errors import Corrupt
from dragoman.history.identity import SessionIdentity
from dragoman.history.records import is_sealed, message_of
from dragoman.history.storage.protocol import Storage
from dragoman.history.storage.sealed import SealedStorage

NOT_ENCRYPTED = (
    "it is not encrypted: it was stored before encryption was turned on, or without the keys;"
    " --accept-plain reads it"
)


class KeyedStorage(SealedStorage):
    """A store with keys; the store below tells plain messages from altered ones."""

    def __init__(
        self, storage: Storage, *, keys: dict[str, bytes], current: str, accept_plain: bool
    ) -> None:
        super().__init__(storage, keys=keys, current=current, accept_plain=accept_plain)
        self.beneath = storage


async def is_plain_beneath(storage: Storage, identity: SessionIdentity, id: str) -> bool:
    """Whether a rejected message is a valid unencrypted one."""
    if not isinstance(storage, KeyedStorage):
        return False
    row = await storage.beneath.row(identity, id)
    if row is None or is_sealed(row.body):
        return False
    try:
        message_of(row.body)
    except Corrupt:
        return False
    return True
