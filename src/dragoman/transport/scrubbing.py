"""Removes keys, cookies and account data from recordings."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from urllib.parse import parse_qsl, urlencode, urlsplit

SCRUBBED = "***"
_MIN_KEY_LENGTH = 8  # minimum length of a key to look for in replies

# The only request headers that are recorded: others come from the user, and may be keys.
_RECORDED_HEADERS = frozenset({
    "accept", "anthropic-beta", "anthropic-version", "content-type", "openai-beta", "user-agent",
    "x-goog-upload-command", "x-goog-upload-header-content-length",
    "x-goog-upload-header-content-type", "x-goog-upload-offset", "x-goog-upload-protocol",
})  # fmt: skip
# Reply headers that are not recorded.
_ACCOUNT_HEADERS = frozenset({
    "anthropic-organization-id", "cookie", "openai-organization", "openai-project", "set-cookie",
})  # fmt: skip
# Nor those about the connection: the body is recorded decompressed and whole.
_CONNECTION = frozenset({
    "connection", "content-encoding", "content-length", "keep-alive", "transfer-encoding",
})  # fmt: skip
_SECRET = re.compile(
    r"(?:^|[-_.])(?:(?:api)?-?key|token|secret|auth(?:orization)?|password|passwd|credential"
    r"|signature|sig|cookie)$",
    re.IGNORECASE,
)


def is_secret(name: str, more: Collection[str] = ()) -> bool:
    """Whether a header or query parameter of that name is secret.

    >>> is_secret("X-Api-Key"), is_secret("access_token"), is_secret("x-ratelimit-limit-tokens")
    (True, True, False)
    """
    return name.lower() in more or _SECRET.search(name) is not None


def sent_headers(headers: Mapping[str, str], more: Collection[str] = ()) -> dict[str, str]:
    """The headers of a request, with most values hidden."""
    return {
        name.lower(): value
        if name.lower() in _RECORDED_HEADERS and not is_secret(name, more)
        else SCRUBBED
        for name, value in headers.items()
    }  # fmt: skip


def secrets_in(headers: Mapping[str, str], more: Collection[str] = ()) -> list[bytes]:
    """The keys in the headers of a request, with and without their scheme prefix."""
    values = [value for name, value in headers.items() if is_secret(name, more)]
    found = {word for value in values for word in (value, value.rpartition(" ")[2])}
    return sorted((w.encode() for w in found if len(w) >= _MIN_KEY_LENGTH), key=len, reverse=True)


def without_secrets(chunks: list[bytes], secrets: Collection[bytes]) -> list[bytes]:
    """The chunks of a reply; joined into one if a key had to be removed from them."""
    whole = b"".join(chunks)
    found = [secret for secret in secrets if secret in whole]
    for secret in found:
        whole = whole.replace(secret, SCRUBBED.encode())
    return [whole] if found else chunks


def come_headers(headers: Mapping[str, str], more: Collection[str] = ()) -> dict[str, str]:
    """The headers of a reply, without secrets."""
    named = {name.lower(): value for name, value in headers.items()}
    return {
        name: SCRUBBED if name in _ACCOUNT_HEADERS or is_secret(name, more) else value
        for name, value in named.items()
        if name not in _CONNECTION
    }


def place_of(url: str, more: Collection[str] = ()) -> str:
    """A URL without host and secrets, with its query sorted.

    >>> place_of("https://me:pw@a.example/v1/models?key=1&alt=sse")
    '/v1/models?alt=sse&key=***'
    """
    parts = urlsplit(url)
    query = sorted(
        (name, SCRUBBED if is_secret(name, more) else value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    )
    return f"{parts.path}?{urlencode(query, safe='*')}" if query else parts.path
