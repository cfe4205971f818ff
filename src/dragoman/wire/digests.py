"""Hash functions, imported on first use: most requests need none, and OpenSSL loads slowly."""

from __future__ import annotations

from typing import Any


def sha256(data: bytes) -> Any:
    """The hash object of `hashlib.sha256`."""
    from hashlib import sha256 as hashed

    return hashed(data)


def blake2b(data: bytes, *, digest_size: int, key: bytes = b"") -> Any:
    """The hash object of `hashlib.blake2b`."""
    from hashlib import blake2b as hashed

    return hashed(data, digest_size=digest_size, key=key)
