"""When to come back: what the headers of an error, or its text, say about it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from math import isfinite

_MAX_TEXT = 64
_EPOCH = 1e9  # more than thirty years is no wait but a moment: seconds since 1970
_EPOCH_MS = 1e12
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_STEP = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|d)")
_DURATION = re.compile(rf"(?:{_STEP.pattern}){{1,5}}")
_IN_TEXT = re.compile(rf"(?:try again|retry) in ((?:{_STEP.pattern}){{1,5}})", re.IGNORECASE)
_SECONDS_IN_TEXT = re.compile(r"(?:try again|retry) in (\d{1,6}(?:\.\d+)?) second", re.IGNORECASE)


def retry_after(
    headers: Mapping[str, str], text: str = "", *, now: float | None = None
) -> float | None:
    """Seconds to wait; None where nobody says. Header names are in lower case.

    >>> retry_after({"retry-after": "20"})
    20.0
    >>> retry_after({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m30s"})
    90.0
    """
    moment = time.time() if now is None else now
    for wait in _said(headers, text, moment):
        if wait is not None and isfinite(wait):
            return max(wait, 0.0)
    return None


def _said(headers: Mapping[str, str], text: str, now: float) -> Iterator[float | None]:
    milliseconds = _number(headers.get("retry-after-ms", ""))
    yield None if milliseconds is None else milliseconds / 1000
    yield _moment(headers.get("retry-after", ""), now)
    yield _exhausted(headers, now)
    yield _moment(headers.get("x-ratelimit-reset", ""), now)
    yield _in_text(text)


def _exhausted(headers: Mapping[str, str], now: float) -> float | None:
    """The longest wait among the limits that are used up; the others say nothing."""
    waits: list[float] = []
    for name, left in headers.items():
        if "ratelimit" in name and "remaining" in name and _number(left) == 0:
            wait = _moment(headers.get(_reset_of(name), ""), now)
            if wait is not None:
                waits.append(wait)
    return max(waits, default=None)


def _reset_of(name: str) -> str:
    # OpenAI puts the word in the middle (`-remaining-tokens`), Anthropic at the end.
    return name.replace("remaining", "reset")


def _moment(value: str, now: float) -> float | None:
    """A wait in seconds, from a number, a duration, a date or the seconds since 1970."""
    value = value.strip()
    if not value or len(value) > _MAX_TEXT:
        return None
    number = _number(value)
    if number is None:
        return _duration(value) if _DURATION.fullmatch(value) else _date(value, now)
    if number > _EPOCH_MS:
        return number / 1000 - now
    return number - now if number > _EPOCH else number


def _number(value: str) -> float | None:
    try:
        number = float(value) if len(value) <= _MAX_TEXT else None
    except ValueError:
        return None
    return number if number is not None and isfinite(number) else None


def _duration(value: str) -> float:
    """OpenAI's way: `1s`, `6m0s`, `20ms`."""
    return sum(float(amount) * _UNITS[unit] for amount, unit in _STEP.findall(value))


def _date(value: str, now: float) -> float | None:
    """An HTTP date, or RFC 3339 as Anthropic writes it."""
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = parse(value)
            aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return aware.timestamp() - now
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
    return None


def _in_text(text: str) -> float | None:
    if found := _IN_TEXT.search(text):
        return _duration(found[1])
    found = _SECONDS_IN_TEXT.search(text)
    return float(found[1]) if found else None
