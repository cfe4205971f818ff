"""All network I/O: clients of models, retries, fallbacks, and replayed traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman._lazy import lazily

if TYPE_CHECKING:
    from dragoman.transport.client import Client
    from dragoman.transport.fallback import FallbackModel
    from dragoman.transport.local.model import LocalModel
    from dragoman.transport.model import Model, open_model
    from dragoman.transport.protocol import Timeouts, Transport
    from dragoman.transport.rate_limits import Limits
    from dragoman.transport.retries import Retries

_HOMES = {
    "client": ("Client",),
    "fallback": ("FallbackModel",),
    "local.model": ("LocalModel",),
    "model": ("Model", "open_model"),
    "protocol": ("Timeouts", "Transport"),
    "rate_limits": ("Limits",),
    "retries": ("Retries",),
}

__all__ = [
    "Client",
    "FallbackModel",
    "Limits",
    "LocalModel",
    "Model",
    "Retries",
    "Timeouts",
    "Transport",
    "open_model",
]

__getattr__, __dir__ = lazily(__name__, _HOMES)
