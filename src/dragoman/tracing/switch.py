"""Whether tracing is on: OpenTelemetry's API is installed and configured.

Without the package, or without a tracer or meter provider, nothing is imported and nothing is
created: the check costs a tenth of a microsecond.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import lru_cache
from typing import Any

_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_ON_SPANS = frozenset({"true", "1", "span_only", "span_and_event"})
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_VALUE = re.compile(r"[\t\x20-\x7e]*")
_FRAMING = frozenset({"connection", "content-length", "host", "transfer-encoding"})
"""Headers that belong to the connection."""
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
    off. It is off, too, if the configured provider fails.
    """
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return None
    try:
        provider = trace.get_tracer_provider()
        if provider is not _Listening.provider:
            is_real = type(provider).__name__ not in ("ProxyTracerProvider", "NoOpTracerProvider")
            _Listening.tracer = provider.get_tracer(SCOPE, _version()) if is_real else None
            _Listening.provider = provider
    except Exception:  # noqa: BLE001 - a custom provider, or a variable that names a missing one
        return None
    return _Listening.tracer


def meter() -> Any:
    """The meter; None if metrics are off."""
    metrics = sys.modules.get("opentelemetry.metrics")
    if metrics is None:
        return None
    try:
        provider = metrics.get_meter_provider()
        if provider is not _Listening.meters:
            is_real = type(provider).__name__ not in ("_ProxyMeterProvider", "NoOpMeterProvider")
            _Listening.meter = provider.get_meter(SCOPE, _version()) if is_real else None
            _Listening.meters = provider
    except Exception:  # noqa: BLE001 - as above
        return None
    return _Listening.meter


def is_traced() -> bool:
    """Whether spans or metrics are on."""
    return tracer() is not None or meter() is not None


def captures_content() -> bool:
    """Whether message content may be captured: only if the standard variable is set."""
    value = os.environ.get(_CONTENT)
    return value is not None and value.strip().lower() in _ON_SPANS


def propagated(headers: Mapping[str, str]) -> Mapping[str, str]:
    """The headers, with those that propagate the current span if tracing is on.

    What a custom propagator adds is sent only if it is a valid header that the request doesn't
    have.
    """
    if tracer() is None:
        return headers
    from opentelemetry.propagate import inject

    found: dict[str, str] = {}
    with suppress(Exception):  # a custom propagator may fail
        inject(found)
        taken = {name.lower() for name in headers}
        return {**headers, **{n: v for n, v in found.items() if _is_new_header(n, v, taken)}}
    return headers


def _is_new_header(name: str, value: str, taken: AbstractSet[str]) -> bool:
    lower = _header_name(name)
    return lower is not None and lower not in taken and _VALUE.fullmatch(value) is not None


@lru_cache(maxsize=32)
def _header_name(name: str) -> str | None:
    """The name in lower case; None if it is not allowed."""
    lower = name.lower()
    return lower if _NAME.fullmatch(name) and lower not in _FRAMING else None


def _version() -> str:
    from dragoman._version import __version__

    return __version__
