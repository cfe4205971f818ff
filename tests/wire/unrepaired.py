"""Requests as a dialect's own encoder writes them: without repairs."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from dragoman.model.requests import Request
from dragoman.wire.dialect import Dialect
from dragoman.wire.encoded import Encoded
from dragoman.wire.target import Target


def unrepaired(dialect: Dialect, default: Target | None = None) -> Callable[..., Encoded]:
    """A dialect's encoder of requests, for a target that may be given after the request."""
    module = import_module(f"dragoman.wire.{dialect.name.replace('-', '_')}.request")

    def encode_request(request: Request, target: Target | None = default) -> Encoded:
        encoded: Encoded = module.encode_request(request, *([target] if target else []))
        return encoded

    return encode_request
