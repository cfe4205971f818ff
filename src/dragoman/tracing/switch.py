"""Whether tracing is on: OpenTelemetry's API is installed and configured.

Without the package, or without a tracer or meter provider, nothing is imported and nothing is
created: the check costs a tenth of a microsecond.
"""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any

_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_ON_SPANS = frozenset({"true", "1", "span_only", "span_and_event"})
SCOPE = "dragoman"


class _Listening:
    """The result of the last check; providers are normally set once, at program start."""

    provider: Any = None
    tracer: Any = None
    meters: Any = None
    meter: Any = None


def tracer() -> Any:
    """The tracer; None if tracing is off.

    A program that configures tracing has imported `opentelemetry.trace`: without that import, it is
    off.
    """
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    provider = trace.get_tracer_provider()
    if provider is not _Listening.provider:
        _Listening.provider = provider
        is_real = type(provider).__name__ not in ("ProxyTracerProvider", "NoOpTracerProvider")
        _Listening.tracer = provider.get_tracer(SCOPE, _version()) if is_real else None
    return _Listening.tracer


def meter() -> Any:
    """The meter; None if metrics are off."""
    metrics = sys.modules.get("opentelemetry.metrics")
    if metrics is None:
        return None
    provider = metrics.get_meter_provider()
    if provider is not _Listening.meters:
        _Listening.meters = provider
        is_real = type(provider).__name__ not in ("_ProxyMeterProvider", "NoOpMeterProvider")
        _Listening.meter = provider.get_meter(SCOPE, _version()) if is_real else None
    return _Listening.meter


def is_traced() -> bool:
    """Whether spans or metrics are on."""
    return tracer() is not None or meter() is not None


def captures_content() -> bool:
    """Whether message content may be captured: only if the standard variable is set."""
    return os.environ.get(_CONTENT, "").strip().lower() in _ON_SPANS


def propagate(headers: MutableMapping[str, str]) -> None:
    """Add the headers that propagate the current span."""
    if tracer() is not None:
        from opentelemetry.propagate import inject

        with suppress(Exception):  # a custom propagator may fail
            inject(headers)


def _version() -> str:
    from dragoman._version import __version__

    return __version__
