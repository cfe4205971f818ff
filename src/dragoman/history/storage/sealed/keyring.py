"""Sealing and opening: AES-256-GCM, a fresh nonce each, bound to where the record belongs.

```json
{"dragoman":2,"kind":"SealedMessage",
 "value":{"key":"2026","check":"9f86d081","nonce":"…","data":"…","place":"5d41402abc4b2a76.0.12"}}
```

`check` is 4 bytes of a hash of the key: it tells a wrong key, which is a mistake in the
configuration, from a record that was altered. Frozen: every later version reads this.

Records with a `place` are bound to it, and to all that stands beside them in plain text; see
`dragoman.history.storage.sealed.binding`. Those from before have none, and are bound to their
session and id. The kind `SealedHead` proves the state of a whole session, `SealedCheckpoint` that
of a whole store.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Any, Literal, Never

import msgspec

from dragoman.errors import ConfigError, InvalidInputError
from dragoman.model import document

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

Kind = Literal["SealedMessage", "SealedWindow", "SealedHead", "SealedCheckpoint"]
_KEY, _NONCE = 32, 12


class Sealed(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A record under encryption, as it is stored."""

    key: str
    check: str
    nonce: bytes
    data: bytes
    place: str | None = None

    @property
    def label(self) -> str:
        """Which key it is under: its id is not enough, for a key may be given under a wrong one."""
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
    """The keys by their ids; the `current` one seals, all of them open."""

    __slots__ = ("_checks", "_ciphers", "_refusals", "current")

    def __init__(self, keys: Mapping[str, bytes], current: str) -> None:
        cipher, altered = _cipher()
        self.current = current
        self._refusals = (altered, ValueError)  # the latter for a nonce of another length
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
        """The current key's; see `Sealed.label`."""
        return f"{self._checks[self.current]}.{self.current}"

    def seal(self, kind: Kind, raw: bytes, bound: bytes, place: str | None = None) -> bytes:
        """A document that holds these bytes under the current key."""
        nonce = os.urandom(_NONCE)
        data = self._ciphers[self.current].encrypt(nonce, raw, bound)
        check = self._checks[self.current]
        return document.write(kind, Sealed(self.current, check, nonce, data, place))

    def open(self, sealed: Sealed, bound: bytes) -> bytes | None:
        """What was sealed; None where it has been altered or belongs elsewhere.

        Raises `ConfigError` where its key is missing, or another than the one given.
        """
        problem = self.problem_with(sealed)
        if problem is not None:
            raise ConfigError(problem)
        try:
            return self._ciphers[sealed.key].decrypt(sealed.nonce, sealed.data, bound)
        except self._refusals:
            return None

    def problem_with(self, sealed: Sealed) -> str | None:
        """What is wrong with the keys, going by what a record says that it is under."""
        if sealed.key not in self._ciphers:
            problem = f"the key {sealed.key!r} is missing"
        elif sealed.check != self._checks[sealed.key]:
            problem = f"the key {sealed.key!r} is not the one that messages were sealed with"
        else:
            return None
        return (
            f"{problem}: give the store all keys that are in use, under their ids; if there never"
            " was such a key, the record was altered"
        )


def read_sealed(kind: Kind, raw: bytes) -> Sealed | None:
    """The sealed record in a document of that kind; None where it is none, or damaged."""
    try:
        found = _read(raw)  # as they mostly are, in one step
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
    """Whether these bytes are a sealed document of that kind, going by their beginning."""
    return document.is_of_kind(raw, kind)


def _checked(id: Any, key: Any) -> bytes:
    if not isinstance(id, str) or not id:
        msg = "the id of a key must be a text, and not empty"
    elif not isinstance(key, (bytes, bytearray)) or len(key) != _KEY:
        msg = f"the key {id!r} must be {_KEY} bytes, as `os.urandom({_KEY})` makes them"
    else:
        return bytes(key)
    raise InvalidInputError(msg)


def _check(key: bytes) -> str:
    return blake2b(key, digest_size=4, person=b"dragoman-check").hexdigest()


def _cipher() -> tuple[type[AESGCM], type[Exception]]:
    """The cipher, and what it raises where something was altered."""
    try:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        msg = "encryption needs the package cryptography: pip install 'dragoman[encryption]'"
    else:
        return AESGCM, InvalidTag
    raise ConfigError(msg)
