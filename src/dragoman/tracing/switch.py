"""Whether anybody listens: OpenTelemetry's API is installed, and a program has set it up.

Without the package, or without a provider of spans and metrics, nothing is loaded and nothing is
made: asking costs a tenth of a microsecond.
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
    """What was found when last looked; providers are set once, as a rule when a program starts."""

    provider: Any = None
    tracer: Any = None
    meters: Any = None
    meter: Any = None


def tracer() -> Any:
    """What makes spans; None: nobody wants any.

    Who sets tracing up has imported `opentelemetry.trace`: where nobody has, nobody did.
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
    """What makes metrics; None: nobody wants any."""
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
    """Whether anybody listens."""
    return tracer() is not None or meter() is not None


def captures_content() -> bool:
    """Whether what is said may be written into spans: only if the standard variable says so."""
    return os.environ.get(_CONTENT, "").strip().lower() in _ON_SPANS


def propagate(headers: MutableMapping[str, str]) -> None:
    """Tell whoever gets these headers which span they belong to."""
    if tracer() is not None:
        from opentelemetry.propagate import inject

        with suppress(Exception):  # a propagator of the program's own may fail
            inject(headers)


def _version() -> str:
    from dragoman._version import __version__

    return __version__
