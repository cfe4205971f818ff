"""Sealing and opening: AES-256-GCM, a fresh nonce each, bound to where the record belongs.

```json
{"dragoman":2,"kind":"SealedMessage",
 "value":{"key":"2026","check":"9f86d081","nonce":"…","data":"…"}}
```

`check` is 4 bytes of a hash of the key: it tells a wrong key, which is a mistake in the
configuration, from a record that was altered. Frozen: every later version reads this.

Reserved in version 2: `place`, for records that are bound to their branch and number as well, and
the kind `SealedHead`, for what proves the state of a whole session.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, Never

import msgspec

from dragoman.errors import ConfigError, InvalidInputError
from dragoman.model import document

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

Kind = Literal["SealedMessage", "SealedWindow", "SealedHead"]
_KEY, _NONCE = 32, 12


class _Sealed(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    key: str
    check: str
    nonce: bytes
    data: bytes
    place: str | None = None


document.register("SealedMessage", _Sealed)
document.register("SealedWindow", _Sealed)
document.register("SealedHead", _Sealed)


class Keyring:
    """The keys by their ids; the `current` one seals, all of them open."""

    __slots__ = ("_checks", "_ciphers", "current")

    def __init__(self, keys: Mapping[str, bytes], current: str) -> None:
        cipher = _cipher()
        self.current = current
        self._ciphers = {id: cipher(_checked(id, key)) for id, key in keys.items()}
        self._checks = {id: _check(key) for id, key in keys.items()}
        if current not in self._ciphers:
            msg = "the current key is not among the keys"
            raise InvalidInputError(msg)

    def __reduce__(self) -> Never:
        msg = "keys can't be pickled or copied"
        raise TypeError(msg)

    def seal(self, kind: Kind, raw: bytes, bound: bytes) -> bytes:
        """A document that holds these bytes under the current key."""
        nonce = os.urandom(_NONCE)
        data = self._ciphers[self.current].encrypt(nonce, raw, bound)
        return document.write(kind, _Sealed(self.current, self._checks[self.current], nonce, data))

    def open(self, kind: Kind, raw: bytes, bound: bytes) -> bytes | None:
        """What was sealed; None where it has been altered or belongs elsewhere."""
        from cryptography.exceptions import InvalidTag

        sealed = _read(kind, raw)
        if sealed is None:
            return None
        cipher = self._cipher_of(sealed)
        try:
            return cipher.decrypt(sealed.nonce, sealed.data, bound)
        except (InvalidTag, ValueError):  # the latter for a nonce of another length
            return None

    def is_current(self, kind: Kind, raw: bytes) -> bool:
        """Whether these bytes are sealed under the current key."""
        sealed = _read(kind, raw) if is_sealed_as(kind, raw) else None
        return sealed is not None and sealed.key == self.current

    def _cipher_of(self, sealed: _Sealed) -> AESGCM:
        if sealed.key not in self._ciphers:
            problem = f"the key {sealed.key!r} is missing"
        elif sealed.check != self._checks[sealed.key]:
            problem = f"the key {sealed.key!r} is not the one that messages were sealed with"
        else:
            return self._ciphers[sealed.key]
        msg = f"{problem}: give the store all keys that are in use, under their ids"
        raise ConfigError(msg)


def is_sealed_as(kind: Kind, raw: bytes) -> bool:
    """Whether these bytes are a sealed document of that kind, going by their beginning."""
    return document.is_of_kind(raw, kind)


def _read(kind: Kind, raw: bytes) -> _Sealed | None:
    try:
        sealed: _Sealed = document.read(raw, kind)
    except InvalidInputError:
        return None
    return sealed


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


def _cipher() -> type[AESGCM]:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        msg = "encryption needs the package cryptography: pip install 'dragoman[encryption]'"
    else:
        return AESGCM
    raise ConfigError(msg)
