"""The `format`s that are validated; all others are ignored, as the standard allows.

Times may lack an offset: models often omit it, and Python supports naive times.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable

_DATE = r"\d{4}-\d\d-\d\d"
_TIME = r"\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)?"
_NUMBER = r"\d+(?:[.,]\d+)?"


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII | re.IGNORECASE)
    return lambda text: compiled.fullmatch(text) is not None


def _parses(pattern: str, parse: Callable[[str], object]) -> Callable[[str], bool]:
    looks_right = _matches(pattern)

    def check(text: str) -> bool:
        try:
            return looks_right(text) and parse(text.upper()) is not None
        except ValueError:
            return False

    return check


def _is_address(text: str, version: int) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_address(text).version == version and "%" not in text
    except ValueError:
        return False


_DURATION = (
    rf"-?P(?=[\dT])(?:{_NUMBER}W|(?:{_NUMBER}Y)?(?:{_NUMBER}M)?(?:{_NUMBER}D)?"
    rf"(?:T(?=\d)(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?)"
)
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"

_FORMATS: dict[str, tuple[str, Callable[[str], bool]]] = {
    "date-time": (
        "a date-time such as 2024-05-31T14:00:00Z",
        _parses(rf"{_DATE}[T ]{_TIME}", dt.datetime.fromisoformat),
    ),
    "date": ("a date such as 2024-05-31", _parses(_DATE, dt.date.fromisoformat)),
    "time": ("a time such as 14:00:00", _parses(_TIME, dt.time.fromisoformat)),
    "duration": ("a duration such as P1DT2H", _matches(_DURATION)),
    "email": ("an email address", _matches(r"[^@\s]{1,64}@[^@\s]{1,255}")),
    "hostname": ("a host name", _matches(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*")),
    "ipv4": ("an IPv4 address", lambda text: _is_address(text, 4)),
    "ipv6": ("an IPv6 address", lambda text: _is_address(text, 6)),
    "uri": ("an absolute URI", _matches(r"[a-z][a-z0-9+.-]*:[^\s]*")),
    "uuid": ("a UUID", _matches(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")),
}


def violated_format(name: str, text: str) -> str | None:
    """What the format requires if the text does not match it, otherwise `None`."""
    expected, check = _FORMATS.get(name, ("", None))
    return None if check is None or check(text) else expected
