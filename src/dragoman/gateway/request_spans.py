"""An OpenTelemetry span for each request, if tracing is set up.

The client's `traceparent` is the parent, and upstream requests continue the trace
(`tracing.switch.propagated`). Attributes hold names and numbers, never content.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Coroutine
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dragoman.gateway.access_log import clean
from dragoman.gateway.http import Receive, Scope, Send
from dragoman.gateway.records import RequestRecord
from dragoman.tracing.attributes import PROVIDERS
from dragoman.tracing.switch import tracer

if TYPE_CHECKING:
    from dragoman.gateway.app import App

LOG = logging.getLogger("dragoman.gateway")
_EXPORTER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
_FAILED = 500
_REFUSED = 400
_OPERATIONS = {"chat": "chat", "responses": "chat", "prompt": "text_completion",
               "embed": "embeddings"}  # fmt: skip
_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


class Traced:
    """ASGI middleware that creates a span for each request, if tracing is set up."""

    def __init__(self, app: App) -> None:
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Coroutine[Any, Any, None]:
        """Handle one ASGI scope. Servers must be told that this is ASGI 3: it is not `async`."""
        if scope["type"] != "http":
            return self._app(scope, receive, send)
        making = tracer()
        if making is None:
            return self._app.http(scope, receive, send)
        return self._traced(making, scope, receive, send)

    async def _traced(self, making: Any, scope: Scope, receive: Receive, send: Send) -> None:
        from opentelemetry.trace import use_span

        span = _started(making, scope)
        try:
            with use_span(span, record_exception=False, set_status_on_exception=False):
                await self._app(scope, receive, send)
        finally:
            with suppress(Exception):  # a custom span processor may fail
                span.end()


def _started(making: Any, scope: Scope) -> Any:
    from opentelemetry.propagate import extract
    from opentelemetry.trace import INVALID_SPAN, SpanKind

    carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
               if name in {b"traceparent", b"tracestate", b"baggage"}}  # fmt: skip
    attributes: dict[str, Any] = {
        "http.request.method": scope["method"],
        "url.path": clean(scope["path"]),
        "url.scheme": scope["scheme"],
        "network.protocol.version": scope["http_version"],
    }
    with suppress(Exception):
        if scope.get("server"):
            attributes["server.address"], attributes["server.port"] = scope["server"]
        return making.start_span(
            scope["method"], context=extract(carrier), kind=SpanKind.SERVER, attributes=attributes
        )
    return INVALID_SPAN


def note_span(record: RequestRecord) -> None:
    """Add the outcome of a request to its span; an observer of the gateway."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None or tracer() is None:
        return
    with suppress(Exception):
        span = trace.get_current_span()
        if not span.is_recording():
            return
        span.set_attributes(_attributes(record))
        operation = _OPERATIONS.get(record.kind)
        model = "" if record.model is None else f" {clean(record.model)}"
        span.update_name(f"{operation}{model}" if operation else record.kind)
        # By OpenTelemetry's conventions, a 4xx status is not an error of the server span.
        if record.status >= _FAILED or (record.error is not None and record.status < _REFUSED):
            span.set_status(trace.Status(trace.StatusCode.ERROR))


def _attributes(record: RequestRecord) -> dict[str, Any]:
    found: dict[str, Any] = {
        "http.response.status_code": record.status,
        "dragoman.front": record.front,
        "dragoman.kind": record.kind,
    }
    if record.kind in _OPERATIONS:
        found["gen_ai.operation.name"] = _OPERATIONS[record.kind]
    if record.provider is not None:
        found["gen_ai.provider.name"] = PROVIDERS.get(record.provider, record.provider)
    optional = {
        "gen_ai.request.model": None if record.model is None else clean(record.model),
        "dragoman.route": record.route,
        "dragoman.key": record.key,
        "error.type": record.error,
        "gen_ai.response.time_to_first_chunk": record.first_byte if record.stream else None,
        "gen_ai.usage.cost": None if record.cost is None else float(record.cost),
        "dragoman.attempts": record.attempts or None,
        "dragoman.losses": len(record.losses) or None,
        "dragoman.repairs": len(record.repairs) or None,
    }
    if record.usage is not None:
        optional["gen_ai.usage.input_tokens"] = record.usage.total_input
        optional["gen_ai.usage.output_tokens"] = record.usage.total_output
    return found | {name: value for name, value in optional.items() if value is not None}


def set_up_tracing() -> Any:
    """Set up span export if the standard variables ask for it and nothing else did.

    Returns the tracer provider to shut down, or None.
    """
    if tracer() is not None or not any(os.environ.get(name) for name in _VARIABLES):
        return None
    try:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        exporting: Any = import_module(_EXPORTER)
    except ImportError:
        LOG.warning(
            "spans are not exported: install opentelemetry-sdk and"
            " opentelemetry-exporter-otlp-proto-http"
        )
        return None
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporting.OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider
