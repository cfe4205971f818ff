"""The record of a completed request, for metrics, logs, traces and the page."""

from __future__ import annotations

from decimal import Decimal

from msgspec import Struct

from dragoman.model.usage import Usage


class RequestRecord(Struct, gc=False):
    """A request that was answered, refused or abandoned by its client.

    Holds no content, except the bodies if the operator turned on `keep_bodies`.
    """

    kind: str
    """The kind of endpoint: `chat`, `embed`, `models` …"""
    front: str
    status: int
    seconds: float
    first_byte: float | None = None
    """Seconds until the first byte of the response."""
    route: str | None = None
    provider: str | None = None
    """The provider's kind, such as `openai-compatible`."""
    model: str | None = None
    key: str | None = None
    """The id of the key."""
    usage: Usage | None = None
    cost: Decimal | None = None
    losses: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    attempts: int = 0
    passes: bool = False
    """Whether the response's bytes were passed through unchanged."""
    cached: bool = False
    """Whether the response came from the cache, at no cost."""
    stream: bool = False
    sent: int = 0
    """Bytes of the response body."""
    error: str | None = None
    """The error type, if it failed."""
    left: bool = False
    """Whether the client disconnected before the end."""
    provider_error: str | None = None
    """What the provider said about it, if the operator turned on `log_provider_errors`."""
    request_id: str | None = None
    steps: tuple[tuple[str, float], ...] = ()
    """When each stage was done, in seconds from the start: `received`, `routed`, `translated`,
    `heard` (the response began)."""
    tried: tuple[tuple[str, str | None, float, str | None], ...] = ()
    """The attempts: the provider's name, the model, seconds from the start, and the error type if
    it failed."""
    request_body: bytes | None = None
    """The beginning of the request body, if bodies are kept."""
    answer_body: bytes | None = None
    place: str | None = None
    """The provider's name in `[providers]`."""

    @property
    def provider_name(self) -> str | None:
        """The provider's name in `[providers]`, or its kind if it has no table."""
        return self.place or self.provider
