"""What is known of a request when it is over: what metrics count and logs tell."""

from __future__ import annotations

from decimal import Decimal

from msgspec import Struct

from dragoman.model.usage import Usage


class RequestRecord(Struct, gc=False):
    """A request that was answered, refused or left. Nothing of its content is in it."""

    kind: str
    """What was asked for: `chat`, `embed`, `models` …"""
    front: str
    status: int
    seconds: float
    first_byte: float | None = None
    """Seconds until the first byte of the answer."""
    route: str | None = None
    provider: str | None = None
    model: str | None = None
    key: str | None = None
    """The id of the key."""
    usage: Usage | None = None
    cost: Decimal | None = None
    losses: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    attempts: int = 0
    passes: bool = False
    """Whether the answer's bytes passed untouched."""
    cached: bool = False
    """Whether it was answered out of the cache, at no cost."""
    stream: bool = False
    sent: int = 0
    """Bytes of the answer."""
    error: str | None = None
    """The kind of error, where it ended with one."""
    left: bool = False
    """Whether the client left before the end."""
    request_id: str | None = None
    steps: tuple[tuple[str, float], ...] = ()
    """What was done when, in seconds from the start: `received`, `routed`, `translated`, `heard`.
    """
    tried: tuple[tuple[str, str | None, float, str | None], ...] = ()
    """The places that were asked: provider, model, when, and the kind of error."""
    request_body: bytes | None = None
    """The beginning of it, where bodies are kept."""
    answer_body: bytes | None = None
