"""Reads the model, usage and id of a response that is passed through unchanged."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Raw, Struct

from dragoman.model.usage import Usage
from dragoman.wire.lane.plain import Summary


class _Written(Struct, forbid_unknown_fields=True, gc=False):
    ephemeral_5m_input_tokens: int = 0
    ephemeral_1h_input_tokens: Literal[0] = 0


class _Counts(Struct, forbid_unknown_fields=True, gc=False):
    """Usage with known fields only: an unknown one might affect the price."""

    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation: _Written | None = None
    server_tool_use: None = None
    service_tier: Literal["standard"] | None = None


class _ResponseHead(Struct, gc=False):
    content: Raw
    usage: _Counts
    model: str
    id: str | None = None
    type: Literal["message"] = "message"


_read = msgspec.json.Decoder(_ResponseHead).decode


def summary(body: bytes) -> Summary | None:
    """The summary of a response body; None if the body has to be decoded in full."""
    try:
        head = _read(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    counts = head.usage
    read, written = counts.cache_read_input_tokens or 0, counts.cache_creation_input_tokens or 0
    if min(counts.input_tokens, counts.output_tokens, read, written) < 0:
        return None
    usage = Usage(counts.input_tokens, counts.output_tokens, read, written)
    return Summary(head.model, usage, head.id)
