"""Checks of single values: each returns the parsed value, or notes what is expected."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

from dragoman.gateway.config.document import WRONG, Check, Document
from dragoman.gateway.config.positions import Path
from dragoman.model.spelling import did_you_mean
from dragoman.wire.key_masking import masked

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_HOST_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)", re.ASCII)
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)+", re.ASCII)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f]")
_MAX_TEXT_LENGTH = 4096
_MAX_HOST_LENGTH = 253
_MIN_BYTES, _MAX_BYTES = 1024, 2**34
_MAX_SECONDS = 10 * 365 * 86400.0
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_USER_ONLY = re.compile(r"[a-z+]+://[^:@/?#]*@[^@]*", re.ASCII)
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|d)", re.ASCII)
_SIZES = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_SIZE = re.compile(r"(\d{1,12})\s?([kmg]i?b)", re.ASCII | re.IGNORECASE)
_CREDENTIALS = frozenset(
    {"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-goog-api-key"}
)

NO_KEYS = "API keys don't belong in the file: set api_key_env to the variable that holds the key"


def rule(of: str, test: Callable[[Any], Any]) -> Check:
    """Make a check from a function that returns a value or `WRONG`; `of` describes valid ones."""

    def check(document: Document, path: Path, value: Any) -> Any:
        kept = test(value)
        return document.problem(path, f"this must be {of}") if kept is WRONG else kept

    return check


def whole(least: int, most: int) -> Check:
    """Check for an integer within bounds."""

    def test(value: Any) -> Any:
        is_whole = type(value) is int and least <= value <= most
        return value if is_whole else WRONG

    return rule(f"a whole number from {least} to {most}", test)


def number(least: float, most: float) -> Check:
    """Check for a number within bounds."""

    def test(value: Any) -> Any:
        is_number = type(value) in {int, float} and least <= value <= most
        return value if is_number else WRONG

    return rule(f"a number from {least} to {most}", test)


def one_of(names: Sequence[str]) -> Check:
    """Check for one of several words."""

    def check(document: Document, path: Path, value: Any) -> Any:
        if isinstance(value, str) and value in names:
            return value
        near = did_you_mean(value, names)
        return document.problem(path, f"this must be one of {', '.join(names)}{near}")

    return check


def list_of(check: Check, what: str) -> Check:
    """Check for a list of valid items; returns a tuple."""

    def checked(document: Document, path: Path, value: Any) -> Any:
        if not isinstance(value, list):
            return document.problem(path, f'this must be a list of {what}, as in ["…"]')
        found = [check(document, (*path, index), each) for index, each in enumerate(value)]
        return WRONG if any(each is WRONG for each in found) else tuple(found)

    return checked


def _text(value: Any) -> Any:
    is_text = isinstance(value, str) and 0 < len(value) <= _MAX_TEXT_LENGTH
    return value if is_text and not _CONTROL.search(value) else WRONG


def _seconds(value: Any) -> Any:
    """Parse a duration: `30`, `"1.5s"`, `"10m"`."""
    if isinstance(value, str):
        found = _DURATION.fullmatch(value.strip())
        value = float(found[1]) * _UNITS[found[2]] if found else None
    if type(value) not in {int, float} or not 0 < value <= _MAX_SECONDS:
        return WRONG
    return float(value)


def _limit(value: Any) -> Any:
    return None if value == "none" else _seconds(value)


def _bytes(value: Any) -> Any:
    if isinstance(value, str):
        found = _SIZE.fullmatch(value.strip())
        value = int(found[1]) * _SIZES[found[2].lower()] if found else None
    return value if type(value) is int and _MIN_BYTES <= value <= _MAX_BYTES else WRONG


def _bytes_or_off(value: Any) -> Any:
    return 0 if value == "off" else _bytes(value)


def _host(value: Any) -> Any:
    """Check for a host name or address, without a port."""
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_HOST_LENGTH:
        return WRONG
    try:
        return str(ip_address(value.removeprefix("[").removesuffix("]")))
    except ValueError:
        labels = value.removesuffix(".").split(".")
    is_numeric = labels[-1].isdigit()  # such as 127.0.0.256
    return value if all(map(_HOST_LABEL.fullmatch, labels)) and not is_numeric else WRONG


def _network(value: Any) -> Any:
    """Check for an IP address or network."""
    if not isinstance(value, str):
        return WRONG
    try:
        return str(ip_network(value))
    except ValueError:
        return WRONG


def _url(value: Any) -> Any:
    """Check for a URL without credentials, query and fragment; braces enclose parameters."""
    if not isinstance(value, str) or len(value) > _MAX_TEXT_LENGTH or _UNPRINTABLE.search(value):
        return WRONG
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port  # a bad port raises
    except ValueError:
        return WRONG
    is_address = parts.scheme in {"http", "https"} and host
    if not is_address or "@" in parts.netloc or "?" in value or "#" in value:
        return WRONG
    is_host = "{" in parts.netloc or _host(host) is not WRONG
    return value.rstrip("/") if is_host else WRONG


def store_url(schemes: Sequence[str]) -> Check:
    """Check for the URL of a store. It may contain a password, so it is never shown."""

    def test(value: Any) -> Any:
        if _text(value) is WRONG:
            return WRONG
        scheme, colon, _ = value.partition(":")
        return value if colon and scheme in schemes else WRONG

    return rule(f"the URL of a store that begins with {', '.join(schemes)}", test)


def may_hold_password(url: str) -> bool:
    """Whether the URL of a store may contain a password: one without says so to the letter.

    >>> may_hold_password("postgresql://me@h/db"), may_hold_password("postgresql://h/db?password=x")
    (False, True)
    """
    return "password" in url or ("@" in url and _USER_ONLY.fullmatch(url) is None)


def _variable(value: Any) -> Any:
    is_name = isinstance(value, str) and _VARIABLE.fullmatch(value)
    return value if is_name and masked(value) == value else WRONG  # some keys look like names


def _prefix(value: Any) -> Any:
    if not isinstance(value, str) or len(value) > _MAX_HOST_LENGTH or "/." in value:
        return WRONG
    path = value.rstrip("/")
    return path if not path or _PREFIX.fullmatch(path) else WRONG


def _pattern(value: Any) -> Any:
    """Normalise a model's name or pattern; several stars in a row are one."""
    return WRONG if _text(value) is WRONG else re.sub(r"\*+", "*", value.strip()) or WRONG


def _flag(value: Any) -> Any:
    return value if isinstance(value, bool) else WRONG


def mapping(check: Check, what: str) -> Check:
    """Check for a table with arbitrary keys and valid values."""

    def checked(document: Document, path: Path, value: Any) -> Any:
        if not isinstance(value, dict):
            return document.problem(path, f'this must be a table of {what}, as in {{ name = "…" }}')
        found = {name: check(document, (*path, name), each) for name, each in value.items()}
        return WRONG if any(each is WRONG for each in found.values()) else found

    return checked


def headers(document: Document, path: Path, value: Any) -> Any:
    """Check for extra request headers; headers that carry keys are refused."""
    found = mapping(text, "headers")(document, path, value)
    for name in value if isinstance(value, dict) else ():
        if name.lower() in _CREDENTIALS:
            found = document.problem((*path, name), NO_KEYS, at_key=True)
        elif not _HEADER.fullmatch(name):
            found = document.problem((*path, name), "this is not a valid header name", at_key=True)
    if found is not WRONG and len({name.lower() for name in found}) < len(found):
        return document.problem(path, "a header is given twice")
    return found


text = rule("a single-line string", _text)
flag = rule("true or false", _flag)
seconds = rule('a positive number of seconds, or a string such as "30s", "10m", "1h"', _seconds)
limit = rule('a positive number of seconds, a string such as "30s" or "10m", or "none"', _limit)
size = rule('a number of bytes from 1024 up, or a string such as "64MiB"', _bytes)
size_or_off = rule(
    'a number of bytes from 1024 up, a string such as "64MiB", or "off"', _bytes_or_off
)
host = rule('a host name or an IP address, such as "127.0.0.1"', _host)
network = rule('an IP address or network, such as "10.0.0.0/8"', _network)
url = rule('a URL such as "https://llm.example.org/v1", without a user, password or query', _url)
variable = rule("the name of an environment variable, such as LAB_KEY, not a key", _variable)
path_prefix = rule('a path such as "/llm"', _prefix)
pattern = rule("the name of a model, in which * matches any text", _pattern)
