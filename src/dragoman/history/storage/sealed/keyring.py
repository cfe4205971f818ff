"""Encrypts and decrypts with AES-256-GCM, a fresh nonce each, bound to the record's position.

```json
{"dragoman":2,"kind":"SealedMessage",
 "value":{"key":"2026","check":"9f86d081","nonce":"…","data":"…","place":"5d41402abc4b2a76.0.12"}}
```

`check` is 4 bytes of a hash of the key. It distinguishes a wrong key, which is a configuration
error, from an altered record. The format is frozen: every later version reads it.

Messages have a `place`, and are bound to it and to everything stored in plain text next to them;
see the section on associated data. The kind `SealedHead` proves the state of a session,
`SealedCheckpoint` that of a store.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Any, Literal, Never

import msgspec

from dragoman.errors import ConfigError, InvalidInputError
from dragoman.history.storage.integrity import described
from dragoman.history.storage.protocol import Entry
from dragoman.model import document

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

# --- associated data: moving or altering anything of a record makes it unreadable
#
# A message is bound to its session, its position, and everything stored in plain text next to it:
# id, time, model and token counts. Its position is the life of its session, its branch and its
# number. A life starts when a session is created or cleared, and is identified by a random number:
# records from an earlier life of a session are not valid in a later one.


_FORM = b"bound-2|"


def place_in(life: str, branch: int, seq: int) -> str:
    """The position of a message."""
    return f"{life}.{branch}.{seq}"


def life_in(place: str) -> str:
    """The life in a position."""
    return place.partition(".")[0]


def message_bound(digest: str, entry: Entry, place: str) -> bytes:
    """The associated data of a message."""
    where = f"message|{digest}|{place}|"
    return _FORM + where.encode(errors="surrogatepass") + described(entry)


def windows_bound(digest: str, life: str) -> bytes:
    """The associated data of windows: their session, and its life."""
    return _FORM + f"windows|{digest}|{life}".encode(errors="surrogatepass")


def head_bound(digest: str) -> bytes:
    """The associated data of a session's head."""
    return _FORM + f"head|{digest}".encode()


CHECKPOINT = _FORM + b"checkpoint"


def weight(salt: bytes, entry: Entry, branch: int, seq: int) -> int:
    """A stored message's contribution to its session's sum; unpredictable without the salt."""
    about = b"%d.%d|%b" % (branch, seq, described(entry))
    hashed = blake2b(b"%d:%b%b" % (len(about), about, entry.body), digest_size=32, key=salt)
    return int.from_bytes(hashed.digest())


# --- keys


Kind = Literal["SealedMessage", "SealedWindow", "SealedHead", "SealedCheckpoint"]
_KEY, _NONCE = 32, 12


class Sealed(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """An encrypted record, as stored."""

    key: str
    check: str
    nonce: bytes
    data: bytes
    place: str | None = None

    @property
    def label(self) -> str:
        """Identifies its key: the id alone is not enough, as a key may be given with a wrong id."""
        return f"{self.check}.{self.key}"

    def __repr__(self) -> str:
        return f"Sealed({len(self.data)} bytes)"


class _Document(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    dragoman: Annotated[int, msgspec.Meta(ge=document.OLDEST, le=document.VERSION)]
    kind: str
    value: Sealed


_read = msgspec.json.Decoder(_Document).decode
document.register("SealedMessage", Sealed)
document.register("SealedWindow", Sealed)
document.register("SealedHead", Sealed)
document.register("SealedCheckpoint", Sealed)


class Keyring:
    """The keys by their ids; the `current` one encrypts, all of them decrypt."""

    __slots__ = ("_checks", "_ciphers", "_refusals", "current")

    def __init__(self, keys: Mapping[str, bytes], current: str) -> None:
        cipher, altered = _cipher()
        self.current = current
        self._refusals = (altered, ValueError)  # ValueError: a nonce of the wrong length
        self._ciphers = {id: cipher(_checked(id, key)) for id, key in keys.items()}
        self._checks = {id: _check(key) for id, key in keys.items()}
        if current not in self._ciphers:
            msg = "the current key is not among the keys"
            raise InvalidInputError(msg)

    def __reduce__(self) -> Never:
        msg = "keys can't be pickled or copied"
        raise TypeError(msg)

    @property
    def label(self) -> str:
        """The label of the current key; see `Sealed.label`."""
        return f"{self._checks[self.current]}.{self.current}"

    def seal(self, kind: Kind, raw: bytes, bound: bytes, place: str | None = None) -> bytes:
        """Encrypts bytes with the current key; returns a document."""
        nonce = os.urandom(_NONCE)
        data = self._ciphers[self.current].encrypt(nonce, raw, bound)
        check = self._checks[self.current]
        return document.write(kind, Sealed(self.current, check, nonce, data, place))

    def open(self, sealed: Sealed, bound: bytes) -> bytes | None:
        """Decrypts a record; `None` if it was altered or belongs elsewhere.

        Raises `ConfigError` if its key is missing, or differs from the one given.
        """
        problem = self.problem_with(sealed)
        if problem is not None:
            raise ConfigError(problem)
        try:
            return self._ciphers[sealed.key].decrypt(sealed.nonce, sealed.data, bound)
        except self._refusals:
            return None

    def problem_with(self, sealed: Sealed) -> str | None:
        """What is wrong with the keys, according to a record's header."""
        if sealed.key not in self._ciphers:
            problem = f"the key {sealed.key!r} is missing"
        elif sealed.check != self._checks[sealed.key]:
            problem = f"the key {sealed.key!r} is not the one that messages were encrypted with"
        else:
            return None
        return (
            f"{problem}; give the store all keys that are in use, with their ids. If there never"
            " was such a key, the record was altered"
        )


def read_sealed(kind: Kind, raw: bytes) -> Sealed | None:
    """The encrypted record in a document of this kind; `None` if it is damaged or of another."""
    try:
        found = _read(raw)  # the common case, in one step
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        found = None
    if found is not None and found.kind == kind:
        return found.value
    try:
        sealed: Sealed = document.read(raw, kind)
    except InvalidInputError:
        return None
    return sealed


def is_sealed_as(kind: Kind, raw: bytes) -> bool:
    """Whether bytes start like an encrypted document of this kind."""
    return document.is_of_kind(raw, kind)


def _checked(id: Any, key: Any) -> bytes:
    if not isinstance(id, str) or not id:
        msg = "the id of a key must be a non-empty string"
    elif not isinstance(key, (bytes, bytearray)) or len(key) != _KEY:
        msg = f"the key {id!r} must be {_KEY} bytes, such as from `os.urandom({_KEY})`"
    else:
        return bytes(key)
    raise InvalidInputError(msg)


def _check(key: bytes) -> str:
    return blake2b(key, digest_size=4, person=b"dragoman-check").hexdigest()


def _cipher() -> tuple[type[AESGCM], type[Exception]]:
    """The cipher, and the exception it raises for altered data."""
    try:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        msg = "encryption requires another package: pip install 'dragoman[encryption]'"
    else:
        return AESGCM, InvalidTag
    raise ConfigError(msg)
