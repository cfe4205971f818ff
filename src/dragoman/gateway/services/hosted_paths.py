"""Files, uploads and batches: the allowlist of paths and query parameters sent to the provider.

A path must match the table exactly, except for ids. No dots, slashes or escapes in a path can
therefore reach another endpoint of the provider with the operator's key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from dragoman.errors import InvalidRequest
from dragoman.gateway.endpoints import ANTHROPIC, CHAT, GEMINI

_ID = r"[A-Za-z0-9][A-Za-z0-9_-]{0,199}"
_MODEL = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,199}"
_FILES = (
    ("/v1/files", "GET POST"),
    (f"/v1/files/{_ID}", "GET DELETE"),
    (f"/v1/files/{_ID}/content", "GET"),
)
_ROWS = {
    CHAT: (
        *_FILES,
        ("/v1/uploads", "POST"),
        (f"/v1/uploads/{_ID}/(?:parts|complete|cancel)", "POST"),
        ("/v1/batches", "GET POST"),
        (f"/v1/batches/{_ID}", "GET"),
        (f"/v1/batches/{_ID}/cancel", "POST"),
    ),
    ANTHROPIC: (
        *_FILES,
        ("/v1/messages/batches", "GET POST"),
        (f"/v1/messages/batches/{_ID}", "GET DELETE"),
        (f"/v1/messages/batches/{_ID}/cancel", "POST"),
        (f"/v1/messages/batches/{_ID}/results", "GET"),
    ),
    GEMINI: (
        ("/v1(?:beta)?/files", "GET"),
        (f"/v1(?:beta)?/files/{_ID}", "GET DELETE"),
        (f"/v1(?:beta)?/files/{_ID}:download", "GET"),
        ("/upload/v1(?:beta)?/files", "POST PUT"),
        ("/v1(?:beta)?/batches", "GET"),
        (f"/v1(?:beta)?/batches/{_ID}", "GET DELETE"),
        (f"/v1(?:beta)?/batches/{_ID}:cancel", "POST"),
        (f"/v1(?:beta)?/models/{_MODEL}:(?:batchGenerateContent|asyncBatchEmbedContent)", "POST"),
    ),
}
_TABLE = {
    front: tuple((re.compile(pattern), frozenset(methods.split())) for pattern, methods in rows)
    for front, rows in _ROWS.items()
}
_UPLOADS = {CHAT: "/files", ANTHROPIC: "/v1/files", GEMINI: "/upload/v1beta/files"}
"""The upload path, below a provider's base URL."""
_IN_BASE_URL = {CHAT: "/v1"}
"""The path prefix that a provider's base URL already contains."""
_QUERIES = frozenset({
    "after", "before", "limit", "order", "purpose", "after_id", "before_id", "beta", "scope_id",
    "pageSize", "pageToken", "filter", "alt", "upload_id", "upload_protocol",
})  # fmt: skip
_OURS = frozenset({"key", "provider"})
_FORMS = frozenset({"json", "media"})
"""Of `alt`: a batch is charged by what its results report, which can't be read in other forms."""
_DOWNLOAD = ":download"
_MAX_VALUE = 2048
UPLOAD_URL = "x-goog-upload-url"


class Allowed(NamedTuple):
    """An allowed path and its methods."""

    path: str
    methods: frozenset[str]


def allowed_path(front: str, path: str) -> Allowed | None:
    """Looks up a path in the table; None if it is not allowed.

    >>> allowed_path("openai-chat", "/v1/files/file-1").path
    '/v1/files/file-1'
    >>> allowed_path("openai-chat", "/v1/files/../models") is None
    True
    """
    for pattern, methods in _TABLE.get(front, ()):
        if pattern.fullmatch(path):
            return Allowed(path, methods)
    return None


def passed_query(query: bytes, path: str) -> str:
    """Returns the query to send: known parameters only, without the gateway's own."""
    found = [pair for pair in _pairs(query) if pair[0] not in _OURS]
    for name, value in found:
        is_other_form = name == "alt" and (
            value not in _FORMS or (value == "media" and not path.endswith(_DOWNLOAD))
        )
        if name not in _QUERIES or len(value) > _MAX_VALUE or is_other_form:
            msg = "the query has a parameter that files and batches do not support"
            raise InvalidRequest(msg, status=400)
    return urlencode(found)


def query_value(query: bytes, name: str) -> str | None:
    """Returns the value of a query parameter, or None."""
    return next((value for each, value in _pairs(query) if each == name), None)


def _pairs(query: bytes) -> Iterable[tuple[str, str]]:
    try:
        return parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        msg = "the query string is malformed"
    raise InvalidRequest(msg, status=400)


def address(front: str, upload_url: str, path: str, query: str) -> str | None:
    """Returns the provider's URL for a path, derived from its upload URL; None if it has none."""
    root = root_of(front, upload_url)
    if root is None:
        return None
    below = path.removeprefix(_IN_BASE_URL.get(front, ""))
    quoted = quote(below, safe="/:")
    return f"{root}{quoted}?{query}" if query else f"{root}{quoted}"


def root_of(front: str, upload_url: str) -> str | None:
    """Returns a provider's base URL, derived from its upload URL."""
    suffix = _UPLOADS[front]
    return upload_url.removesuffix(suffix) if upload_url.endswith(suffix) else None
