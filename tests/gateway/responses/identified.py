"""Test keys that accept any secret and use it as the owner's name."""

from __future__ import annotations

from typing import Any

from dragoman.errors import AuthenticationError


class Holder:
    """The owner of a key."""

    is_limited = False

    def __init__(self, id: str) -> None:
        self.id = id


class NamedKeys:
    """Accepts any key that begins with `sk-`; the key itself is the owner's id."""

    def recall(self, _presented: str) -> None:
        """Nothing is remembered."""

    async def authenticate(self, presented: str, _peer: str) -> Any:
        """Returns the owner of the key."""
        if not presented.startswith("sk-"):
            msg = "no key"
            raise AuthenticationError(msg, status=401)
        return Holder(presented)

    async def expect_open(self, *_given: Any, **_more: Any) -> None:
        """Every key has something left."""

    async def reserve(self, *_given: Any) -> None:
        """Nothing is limited."""
        return

    async def close(self) -> None:
        """Nothing is held."""
        return
