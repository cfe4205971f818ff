"""The information that middleware gets about an exchange besides the request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_SECRET = re.compile(
    r"auth|cookie|key|token|secret|passw|credential|signature|session|jwt|csrf|xsrf"
)
_MAX_VALUE_LENGTH = 8192


class Headers(Mapping[str, str]):
    """A request's headers, by lower-case name, without those that may contain secrets.

    It records which headers were read: a cached response must not depend on any others.
    """

    def __init__(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._values: dict[str, str] = {}
        self.seen: dict[str, str | None] = {}
        """The headers that were read, with their values."""
        for name, value in headers:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1")
            if len(text) <= _MAX_VALUE_LENGTH and _SECRET.search(key) is None:
                self._values[key] = f"{self._values[key]}, {text}" if key in self._values else text

    def __getitem__(self, name: str) -> str:
        key = name.lower()
        self.seen[key] = self._values.get(key)
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        self.seen.update(self._values)
        return iter(self._values)

    def __len__(self) -> int:
        self.seen.update(self._values)
        return len(self._values)

    def __repr__(self) -> str:
        return f"<{len(self._values)} headers>"


class Info:
    """An exchange, as one middleware sees it."""

    __slots__ = (
        "front", "headers", "is_cacheable", "key_id", "key_name", "model", "route", "session",
        "state", "stream",
    )  # fmt: skip

    def __init__(
        self, *, front: str, headers: Mapping[str, str], model: str | None, stream: bool,
        key_id: str | None = None, key_name: str | None = None, session: str | None = None,
    ) -> None:  # fmt: skip
        self.front = front
        """The client's dialect: `openai-chat`, `openai-responses`, `anthropic`, `gemini`, `ollama`.
        """
        self.key_id = key_id
        """The id of the client's key; None: the gateway has no keys."""
        self.key_name = key_name
        self.model = model
        """The model name that the request is routed by."""
        self.route: str | None = None
        """The name of the route; None in the `route` hook, where it is not known yet."""
        self.headers = headers
        self.session = session
        """The session in which the exchange is stored, if any."""
        self.stream = stream
        self.is_cacheable = True
        """Set to False in `route` or `before` if the response depends on more than the request."""
        self.state: dict[str, Any] = {}
        """Private data of this middleware for the duration of the exchange."""

    def __repr__(self) -> str:
        return f"<info on a request in {self.front}>"
