"""Reads model and usage from complete responses that are passed through unchanged."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from dragoman.errors import DragomanError
from dragoman.model.responses import Response
from dragoman.providers.service_tiers import response_tier
from dragoman.providers.translation import lane_of
from dragoman.wire.dialect import Dialect
from dragoman.wire.front import front_form
from dragoman.wire.lane.plain import Summary

_split = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode
_value = msgspec.json.Decoder().decode


def summary_of(dialect: Dialect, body: bytes) -> Summary | None:
    """The model and usage of a complete response; None: it has to be decoded."""
    lane = lane_of(dialect.name)
    if lane is not None and lane.summary is not None:
        found = lane.summary(body)
        if found is not None:
            return found
    return _summary_in_full(dialect, body)


def _summary_in_full(dialect: Dialect, body: bytes) -> Summary | None:
    content = front_form(dialect).content
    if content is None:
        return None
    field, empty = content
    try:
        fields = _split(body)
        if field not in fields or ("error" in fields and _value(fields["error"]) is not None):
            return None
        fields[field] = Raw(empty)
        return summarised(dialect.decode_response(_encode(fields)))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, DragomanError):
        return None


def summarised(response: Response) -> Summary:
    """The model and usage of a decoded response."""
    return Summary(response.model, response.usage, response.id, response_tier(response))
