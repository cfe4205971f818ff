"""Times as several APIs write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def encode_time(seconds: float | None) -> str:
    """A time of RFC 3339 in UTC; 1970 where it is not known, for clients that want one.

    >>> encode_time(1.5)
    '1970-01-01T00:00:01.500000Z'
    """
    try:
        found = _EPOCH + timedelta(seconds=seconds or 0)
    except (ValueError, OverflowError):
        found = _EPOCH
    return found.isoformat().replace("+00:00", "Z")
