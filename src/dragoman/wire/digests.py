"""Hash functions, imported on first use: most requests need none, and OpenSSL loads slowly."""

from __future__ import annotations

from typing import Protocol


class Hash(Protocol):
    """A hash of some data."""

    def digest(self) -> bytes:
        """As bytes."""
        ...

    def hexdigest(self) -> str:
        """As hexadecimal digits."""
        ...


def sha256(data: bytes) -> Hash:
    """The hash object of `hashlib.sha256`."""
    from hashlib import sha256 as hashed

    return hashed(data)


def blake2b(data: bytes, *, digest_size: int, key: bytes = b"") -> Hash:
    """The hash object of `hashlib.blake2b`."""
    from hashlib import blake2b as hashed

    return hashed(data, digest_size=digest_size, key=key)
