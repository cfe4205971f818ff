"""The format of a key's secret: `drg_<id>_<random><checksum>`.

The id, which is not secret, finds the record; 32 random bytes can't be guessed. The checksum
detects mistyped and truncated keys without a store lookup, and lets secret scanners recognise
leaked keys.
"""

from __future__ import annotations

import re
import zlib
from hashlib import sha256
from secrets import choice, token_bytes

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_IDS = "0123456789abcdefghijkmnpqrstuvwxyz"  # lowercase, without l and o: people read them aloud
_ID_LENGTH = 12
_RANDOM_LENGTH = 43  # base62 digits of 32 bytes
_CHECK_LENGTH = 6  # base62 digits of a CRC-32
SECRET_LENGTH = len("drg_") + _ID_LENGTH + 1 + _RANDOM_LENGTH + _CHECK_LENGTH
_FORM = re.compile(rf"drg_([{_IDS}]{{{_ID_LENGTH}}})_[0-9A-Za-z]{{{_RANDOM_LENGTH}}}", re.ASCII)


def new_id() -> str:
    """A random id for a key."""
    return "".join(choice(_IDS) for _ in range(_ID_LENGTH))


def new_secret(id: str) -> str:
    """A new secret for the key of this id."""
    number = int.from_bytes(token_bytes(32))
    body = f"drg_{id}_{_base62(number, _RANDOM_LENGTH)}"
    return body + _checksum(body)


def id_of(presented: str) -> str | None:
    """The id in a secret; None: it does not have the format of a key."""
    if len(presented) != SECRET_LENGTH:
        return None
    body, check = presented[:-_CHECK_LENGTH], presented[-_CHECK_LENGTH:]
    found = _FORM.fullmatch(body)
    return found[1] if found is not None and check == _checksum(body) else None


def is_id(text: str) -> bool:
    """Whether a text has the format of a key's id."""
    return len(text) == _ID_LENGTH and all(letter in _IDS for letter in text)


def digest_of(secret: str) -> bytes:
    """The digest of a secret, which is stored instead of it.

    SHA-256 and not a slow hash (bcrypt, argon2): slow hashes protect guessable passwords. One of
    2**256 random secrets can't be guessed at any speed, and a slow hash would add milliseconds to
    every request.
    """
    return sha256(secret.encode()).digest()


def _checksum(body: str) -> str:
    return _base62(zlib.crc32(body.encode()), _CHECK_LENGTH)


def _base62(number: int, length: int) -> str:
    digits: list[str] = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
