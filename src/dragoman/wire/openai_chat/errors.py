"""Errors, as bodies and as the `error` of a chunk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.errors import DragomanError, ProviderError
from dragoman.wire.failures import decode_failure
from dragoman.wire.openai_failures import encode_failure


def decode_error(
    status: int | None, body: Any, headers: Mapping[str, str] | None = None
) -> ProviderError:
    """The error in a body, or in a chunk (without a status); never raises."""
    return decode_failure(status, body, headers)


def encode_error(error: DragomanError) -> tuple[int, dict[str, Any]]:
    """The status and the body to answer with; in mid-stream the body is the chunk."""
    return encode_failure(error)
