"""A span of OpenTelemetry: started, current within a block, ended; without ever raising.

Tracing never breaks the traced code: what a custom tracer, sampler or processor raises is
suppressed. What isn't recorded (a trace that is sampled out) is not described either.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import TracebackType
from typing import Any, NamedTuple, Self


class _Api(NamedTuple):
    """The functions of OpenTelemetry's API."""

    client: Any
    internal: Any
    failed: Any
    with_span: Any
    attach: Any
    detach: Any
    current: Any


@cache
def _api() -> _Api:
    from opentelemetry.context import attach, detach, get_current
    from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context

    kinds = SpanKind.CLIENT, SpanKind.INTERNAL
    failed = Status(StatusCode.ERROR)
    return _Api(*kinds, failed, set_span_in_context, attach, detach, get_current)


class Span:
    """A span; `with` makes it current, so that spans and requests in the block are part of it."""

    __slots__ = ("_api", "_context", "_span", "_token", "is_recording")

    def __init__(
        self,
        tracer: Any,
        name: str,
        attributes: Mapping[str, Any],
        *,
        is_client: bool = False,
        began: int | None = None,
    ) -> None:
        self._span: Any = None
        self._token: Any = None
        self._context: Any = None
        self.is_recording = False
        if tracer is None:
            return
        try:
            self._api = api = _api()
            # Given the context, the SDK doesn't look it up again for each of its questions.
            here = api.current()
            kind = api.client if is_client else api.internal
            self._span = span = tracer.start_span(name, here, kind, attributes, (), began)
            self.is_recording = span.is_recording()
            self._context = api.with_span(span, here)
        except Exception:  # noqa: BLE001 - a custom sampler, processor or context
            return

    def __enter__(self) -> Self:
        if self._context is not None:
            self._token = self._api.attach(self._context)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.pause()

    def pause(self) -> None:
        """Make it no longer the current span: other code runs in this context."""
        token, self._token = self._token, None
        # An abandoned coroutine is closed wherever that is noticed: not in the context it ran in.
        if token is not None and self._api.current() is self._context:
            self._api.detach(token)

    def resume(self) -> None:
        """Make it the current span again."""
        if self._context is not None:
            self._token = self._api.attach(self._context)

    def end(self, attributes: Mapping[str, Any], error: str | None = None) -> None:
        """End it, with its last attributes and the type of the error."""
        span, self._span = self._span, None
        if span is None:
            return
        try:
            if self.is_recording:
                if error is not None:
                    attributes = {**attributes, "error.type": error}
                    span.set_status(_api().failed)
                if attributes:
                    span.set_attributes(attributes)
        except Exception:  # noqa: BLE001, S110 - a custom processor; the span ends all the same
            pass
        try:
            span.end()
        except Exception:  # noqa: BLE001 - a custom processor
            return
