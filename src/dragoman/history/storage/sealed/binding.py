"""What a sealed record is bound to: who moves or alters anything of it makes it unreadable.

A message is bound to its session, its place and all that a backend keeps beside it in plain text:
id, time, model and token counts. Its place is the life of its session, its branch and its number.
A life begins when a session is made or cleared, and is a random number: what was written in an
earlier life of the same session does not belong into a later one.
"""

from __future__ import annotations

from hashlib import blake2b

from dragoman.history.identity import SessionIdentity
from dragoman.history.storage.integrity import described
from dragoman.history.storage.protocol import Entry

# No digest begins so: what is bound in this way is never taken for bound in the old one.
_FORM = b"bound-2|"


def place_in(life: str, branch: int, seq: int) -> str:
    """The place of a message."""
    return f"{life}.{branch}.{seq}"


def life_in(place: str) -> str:
    """The life that a place is in."""
    return place.partition(".")[0]


def message_bound(identity: SessionIdentity, entry: Entry, place: str | None) -> bytes:
    """What a message is bound to; without a place, as it was before there were any."""
    if place is None:
        return f"{identity.digest}:{entry.id}".encode(errors="surrogatepass")
    where = f"message|{identity.digest}|{place}|"
    return _FORM + where.encode(errors="surrogatepass") + described(entry)


def window_bound(identity: SessionIdentity, name: str, life: str | None) -> bytes:
    """What a window is bound to: its session, its life, and the field that it is kept in."""
    if life is None:
        return identity.digest.encode()
    return _FORM + f"{name}|{identity.digest}|{life}".encode(errors="surrogatepass")


def head_bound(identity: SessionIdentity) -> bytes:
    """What a session's head is bound to."""
    return _FORM + f"head|{identity.digest}".encode()


CHECKPOINT = _FORM + b"checkpoint"


def weight(salt: bytes, entry: Entry, branch: int, seq: int) -> int:
    """A stored message's part in the sum of its session; without the salt nobody can foresee it."""
    about = b"%d.%d|%b" % (branch, seq, described(entry))
    hashed = blake2b(b"%d:%b%b" % (len(about), about, entry.body), digest_size=32, key=salt)
    return int.from_bytes(hashed.digest())
