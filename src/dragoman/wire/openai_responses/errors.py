"""Errors: bodies, `error` events, and what a failed response says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.errors import DragomanError, InvalidInputError, ProviderError
from dragoman.model.jsontext import loads
from dragoman.wire.failures import decode_failure
from dragoman.wire.openai_failures import encode_failure


def decode_error(
    status: int | None, body: Any, headers: Mapping[str, str] | None = None
) -> ProviderError:
    """The error in a body; without a status in an event, or in a response that failed.

    Never raises. A `response.failed` event has its error inside its `response`.
    """
    return decode_failure(status, _failed_response(body), headers)


def encode_error(error: DragomanError) -> tuple[int, dict[str, Any]]:
    """The status and the body to answer with; in mid-stream its `error` is the event's."""
    return encode_failure(error)


def _failed_response(body: Any) -> Any:
    """The response in a lifecycle event; anything else as it is."""
    opened = body
    if isinstance(body, (bytes, bytearray, memoryview, str)):
        try:
            opened = loads(body)
        except InvalidInputError:
            return body
    response = opened.get("response") if isinstance(opened, Mapping) else None
    return response if isinstance(response, Mapping) else opened
