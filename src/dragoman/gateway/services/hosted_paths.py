"""Files, uploads and batches: which paths pass to the provider, and with what of a query.

A path passes if the table has it, letter by letter but for ids. So nothing reaches a provider with
its key but what is meant to: no other endpoint, by whatever dots, slashes or escapes.
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
"""Where files are uploaded to, below a provider's address."""
_NOT_BELOW = {CHAT: "/v1"}
"""What of a path the addresses of providers have at their end already."""
_QUERIES = frozenset({
    "after", "before", "limit", "order", "purpose", "after_id", "before_id", "beta", "scope_id",
    "pageSize", "pageToken", "filter", "alt", "upload_id", "upload_protocol",
})  # fmt: skip
_OURS = frozenset({"key", "place"})
_LONGEST_VALUE = 2048
UPLOAD_URL = "x-goog-upload-url"


class Allowed(NamedTuple):
    """A path that passes."""

    path: str
    methods: frozenset[str]


def allowed_path(front: str, path: str) -> Allowed | None:
    """A path of the table; None: nothing there passes.

    >>> allowed_path("openai-chat", "/v1/files/file-1").path
    '/v1/files/file-1'
    >>> allowed_path("openai-chat", "/v1/files/../models") is None
    True
    """
    for pattern, methods in _TABLE.get(front, ()):
        if pattern.fullmatch(path):
            return Allowed(path, methods)
    return None


def passed_query(query: bytes) -> str:
    """The query to send on: known names only. Keys and the name of the place are ours."""
    found = [pair for pair in _pairs(query) if pair[0] not in _OURS]
    for name, value in found:
        if name not in _QUERIES or len(value) > _LONGEST_VALUE:
            msg = "the query has a parameter that files and batches do not have"
            raise InvalidRequest(msg, status=400)
    return urlencode(found)


def query_value(query: bytes, name: str) -> str | None:
    """The value of one parameter."""
    return next((value for each, value in _pairs(query) if each == name), None)


def _pairs(query: bytes) -> Iterable[tuple[str, str]]:
    try:
        return parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        msg = "the query of the request is malformed"
    raise InvalidRequest(msg, status=400)


def address(front: str, upload_url: str, path: str, query: str) -> str | None:
    """Where to send a path, given where the provider has files uploaded; None: it has none."""
    root = root_of(front, upload_url)
    if root is None:
        return None
    below = path.removeprefix(_NOT_BELOW.get(front, ""))
    quoted = quote(below, safe="/:")
    return f"{root}{quoted}?{query}" if query else f"{root}{quoted}"


def root_of(front: str, upload_url: str) -> str | None:
    """A provider's address, given where it has files uploaded."""
    suffix = _UPLOADS[front]
    return upload_url.removesuffix(suffix) if upload_url.endswith(suffix) else None
