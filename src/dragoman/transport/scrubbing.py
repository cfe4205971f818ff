"""What recordings must not hold: keys, cookies, and who the account belongs to."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from urllib.parse import parse_qsl, urlencode, urlsplit

SCRUBBED = "***"
_SHORTEST = 8  # characters of a key that is looked for in replies

# Of what is sent, these only: whatever else there is, a user put there, and may be a key.
_SENT = frozenset({
    "accept", "anthropic-beta", "anthropic-version", "content-type", "openai-beta", "user-agent",
    "x-goog-upload-command", "x-goog-upload-header-content-length",
    "x-goog-upload-header-content-type", "x-goog-upload-offset", "x-goog-upload-protocol",
})  # fmt: skip
# Of what comes, not these.
_WHOSE = frozenset({
    "anthropic-organization-id", "cookie", "openai-organization", "openai-project", "set-cookie",
})  # fmt: skip
# Nor what was about the connection: the body is recorded as it was read, unpacked and whole.
_CONNECTION = frozenset({
    "connection", "content-encoding", "content-length", "keep-alive", "transfer-encoding",
})  # fmt: skip
_SECRET = re.compile(
    r"(?:^|[-_.])(?:(?:api)?-?key|token|secret|auth(?:orization)?|password|passwd|credential"
    r"|signature|sig|cookie)$",
    re.IGNORECASE,
)


def is_secret(name: str, more: Collection[str] = ()) -> bool:
    """Whether what goes by that name, of a header or in a query, is nobody's business.

    >>> is_secret("X-Api-Key"), is_secret("access_token"), is_secret("x-ratelimit-limit-tokens")
    (True, True, False)
    """
    return name.lower() in more or _SECRET.search(name) is not None


def sent_headers(headers: Mapping[str, str], more: Collection[str] = ()) -> dict[str, str]:
    """The headers of a request, most values hidden."""
    return {
        name.lower(): value
        if name.lower() in _SENT and not is_secret(name, more)
        else SCRUBBED
        for name, value in headers.items()
    }  # fmt: skip


def secrets_in(headers: Mapping[str, str], more: Collection[str] = ()) -> list[bytes]:
    """The keys in the headers of a request, with and without the word before them."""
    values = [value for name, value in headers.items() if is_secret(name, more)]
    found = {word for value in values for word in (value, value.rpartition(" ")[2])}
    return sorted((w.encode() for w in found if len(w) >= _SHORTEST), key=len, reverse=True)


def without_secrets(chunks: list[bytes], secrets: Collection[bytes]) -> list[bytes]:
    """The pieces of a reply; one piece, where a key that it repeats had to be taken out."""
    whole = b"".join(chunks)
    found = [secret for secret in secrets if secret in whole]
    for secret in found:
        whole = whole.replace(secret, SCRUBBED.encode())
    return [whole] if found else chunks


def come_headers(headers: Mapping[str, str], more: Collection[str] = ()) -> dict[str, str]:
    """The headers of a reply, without what is secret."""
    named = {name.lower(): value for name, value in headers.items()}
    return {
        name: SCRUBBED if name in _WHOSE or is_secret(name, more) else value
        for name, value in named.items()
        if name not in _CONNECTION
    }


def place_of(url: str, more: Collection[str] = ()) -> str:
    """An address without its host and its secrets, its query sorted.

    >>> place_of("https://me:pw@a.example/v1/models?key=1&alt=sse")
    '/v1/models?alt=sse&key=***'
    """
    parts = urlsplit(url)
    query = sorted(
        (name, SCRUBBED if is_secret(name, more) else value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    )
    return f"{parts.path}?{urlencode(query, safe='*')}" if query else parts.path
