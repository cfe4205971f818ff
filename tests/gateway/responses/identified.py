"""Keys that let everybody in under the name that they show: for tests of whose something is."""

from __future__ import annotations

from typing import Any

from dragoman.errors import AuthenticationError


class Holder:
    """Who shows a key."""

    is_limited = False

    def __init__(self, id: str) -> None:
        self.id = id


class NamedKeys:
    """Takes any key that begins with `sk-`; the rest is who it is."""

    async def authenticate(self, presented: str, _peer: str) -> Any:
        """Who shows the key."""
        if not presented.startswith("sk-"):
            msg = "no key"
            raise AuthenticationError(msg, status=401)
        return Holder(presented)

    async def reserve(self, *_given: Any) -> None:
        """Nothing is limited."""
        return

    async def close(self) -> None:
        """Nothing is held."""
        return
