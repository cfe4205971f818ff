"""The time format that several APIs share."""

from __future__ import annotations

from datetime import datetime, timedelta

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - in UTC, which is written by hand


def encode_time(seconds: float | None) -> str:
    """An RFC 3339 time in UTC; the start of 1970 if unknown, for clients that require one.

    >>> encode_time(1.5)
    '1970-01-01T00:00:01.500000Z'
    """
    try:
        found = _EPOCH + timedelta(seconds=seconds or 0)
    except (ValueError, OverflowError):
        found = _EPOCH
    return found.isoformat() + "Z"
