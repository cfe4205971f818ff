"""Reads the model, usage and id of a response that is passed through unchanged."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw, Struct

from dragoman.model.usage import Usage
from dragoman.wire.lane.plain import Summary


class _InputDetails(Struct, forbid_unknown_fields=True, gc=False):
    cached_tokens: int = 0
    cache_write_tokens: int = 0


class _OutputDetails(Struct, forbid_unknown_fields=True, gc=False):
    reasoning_tokens: int = 0


class _Counts(Struct, forbid_unknown_fields=True, gc=False):
    """Usage with known fields only: an unknown one might affect the price."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class _ResponseHead(Struct, gc=False):
    output: Raw
    usage: _Counts
    model: str
    id: str | None = None
    service_tier: Literal["default", "auto"] | None = None
    error: None = None


_read = msgspec.json.Decoder(_ResponseHead).decode


def summary(body: bytes) -> Summary | None:
    """The summary of a response body; None if the body has to be decoded in full."""
    try:
        head = _read(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    counts = head.usage
    input_details, output_details = counts.input_tokens_details, counts.output_tokens_details
    read = 0 if input_details is None else input_details.cached_tokens
    written = 0 if input_details is None else input_details.cache_write_tokens
    thinking = 0 if output_details is None else output_details.reasoning_tokens
    fresh, visible = counts.input_tokens - read - written, counts.output_tokens - thinking
    if min(fresh, visible, read, written, thinking, counts.total_tokens) < 0:
        return None
    usage = Usage(fresh, visible, read, written, thinking, counts.total_tokens)
    return Summary(head.model, usage, head.id)
