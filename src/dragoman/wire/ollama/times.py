"""Times as Go writes them: RFC 3339, down to nanoseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def decode_time(text: object) -> float | None:
    """Seconds since 1970; None where it is no time."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
        return (found - _EPOCH).total_seconds()
    except (
        ValueError,
        TypeError,
        OverflowError,
    ):  # the latter two: without a zone, or out of range
        return None


def encode_time(seconds: float | None) -> str:
    """The time; 1970 where it is not known, for clients that want one."""
    try:
        found = _EPOCH + timedelta(seconds=seconds or 0)
    except (ValueError, OverflowError):
        found = _EPOCH
    return found.isoformat().replace("+00:00", "Z")
