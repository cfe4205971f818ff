"""Associated data of sealed records: moving or altering anything of a record makes it unreadable.

A message is bound to its session, its position, and everything stored in plain text next to it: id,
time, model and token counts. Its position is the life of its session, its branch and its number. A
life starts when a session is created or cleared, and is identified by a random number: records from
an earlier life of a session are not valid in a later one.
"""

from __future__ import annotations

from hashlib import blake2b

from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.integrity import described
from dragoman.history.storage.protocol import Entry

# No digest starts like this, so the old and new forms can't be confused.
_FORM = b"bound-2|"


def place_in(life: str, branch: int, seq: int) -> str:
    """The position of a message."""
    return f"{life}.{branch}.{seq}"


def life_in(place: str) -> str:
    """The life in a position."""
    return place.partition(".")[0]


def message_bound(identity: SessionIdentity, entry: Entry, place: str | None) -> bytes:
    """The associated data of a message; without a position, in the old form."""
    if place is None:
        return f"{identity.digest}:{entry.id}".encode(errors="surrogatepass")
    where = f"message|{identity.digest}|{place}|"
    return _FORM + where.encode(errors="surrogatepass") + described(entry)


def window_bound(identity: SessionIdentity, name: str, life: str | None) -> bytes:
    """The associated data of a window: its session, its life, and the field that stores it."""
    if life is None:
        return identity.digest.encode()
    return _FORM + f"{name}|{identity.digest}|{life}".encode(errors="surrogatepass")


def head_bound(identity: SessionIdentity) -> bytes:
    """The associated data of a session's head."""
    return _FORM + f"head|{identity.digest}".encode()


CHECKPOINT = _FORM + b"checkpoint"


def weight(salt: bytes, entry: Entry, branch: int, seq: int) -> int:
    """A stored message's contribution to its session's sum; unpredictable without the salt."""
    about = b"%d.%d|%b" % (branch, seq, described(entry))
    hashed = blake2b(b"%d:%b%b" % (len(about), about, entry.body), digest_size=32, key=salt)
    return int.from_bytes(hashed.digest())
