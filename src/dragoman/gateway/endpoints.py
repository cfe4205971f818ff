"""The gateway's paths: a table of exact paths, and rules for paths with a model or id in them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

CHAT, RESPONSES, ANTHROPIC, GEMINI, OLLAMA = (
    "openai-chat",
    "openai-responses",
    "anthropic",
    "gemini",
    "ollama",
)


class Endpoint(NamedTuple):
    """The endpoint at a path."""

    kind: str
    """Its kind, which selects the handler: `chat`, `embed`, `models` …"""
    front: str
    """The dialect of its clients."""
    methods: frozenset[str]
    name: str = ""
    """The model or id in the path."""
    action: str = ""
    """The action in the path, such as `countTokens`."""
    streams: bool | None = None
    """Whether to stream; None: the request body decides."""


_POST, _READ = frozenset({"POST"}), frozenset({"GET", "HEAD"})
_ANY = frozenset({"GET", "POST", "DELETE", "HEAD"})
_PAGE = "/ui/"
_PAGE_API = f"{_PAGE}api/"


def _table() -> dict[str, Endpoint]:
    rows = {
        "/v1/chat/completions": Endpoint("chat", CHAT, _POST),
        "/v1/completions": Endpoint("prompt", CHAT, _POST),
        "/v1/embeddings": Endpoint("embed", CHAT, _POST),
        "/v1/responses": Endpoint("responses", RESPONSES, _POST | {"GET"}),
        "/v1/responses/input_tokens": Endpoint("count", RESPONSES, _POST),
        "/v1/responses/compact": Endpoint("compact", RESPONSES, _POST),
        "/v1/conversations": Endpoint("conversations", RESPONSES, _POST),
        "/v1/models": Endpoint("models", CHAT, _READ),
        "/v1/messages": Endpoint("chat", ANTHROPIC, _POST),
        "/v1/messages/count_tokens": Endpoint("count", ANTHROPIC, _POST),
        "/api/chat": Endpoint("chat", OLLAMA, _POST),
        "/api/generate": Endpoint("prompt", OLLAMA, _POST),
        "/api/embed": Endpoint("embed", OLLAMA, _POST),
        "/api/embeddings": Endpoint("embed", OLLAMA, _POST),
        "/api/tags": Endpoint("models", OLLAMA, _READ),
        "/api/show": Endpoint("show", OLLAMA, _POST),
        "/api/ps": Endpoint("running", OLLAMA, _READ),
        "/api/version": Endpoint("version", OLLAMA, _READ),
        "/": Endpoint("root", OLLAMA, _READ),
        "/health": Endpoint("health", CHAT, _READ),
        "/ready": Endpoint("ready", CHAT, _READ),
        "/metrics": Endpoint("metrics", CHAT, _READ),
        "/v1beta/models": Endpoint("models", GEMINI, _READ),
        "/ui": Endpoint("page", CHAT, _READ),
    }
    # Some clients' base URLs end in `/v1`, others' don't: both work.
    for path in (
        *("chat/completions", "completions", "embeddings", "models"),
        *("responses", "responses/input_tokens", "responses/compact"),
    ):
        rows[f"/{path}"] = rows[f"/v1/{path}"]
        rows[f"/openai/v1/{path}"] = rows[f"/v1/{path}"]  # Groq's clients add it themselves
    rows["/messages"] = rows["/v1/messages"]
    return rows


EXACT = _table()
_ACTIONS = {
    "generateContent": "chat",
    "streamGenerateContent": "chat",
    "countTokens": "count",
    "embedContent": "embed",
    "batchEmbedContents": "embed",
    "batchGenerateContent": "hosted",
    "asyncBatchEmbedContent": "hosted",
}
_PASSED = ("files", "uploads", "batches")
_HOSTED = {  # resources stored by one provider, which requests are forwarded to
    **{f"/v1/{name}": CHAT for name in _PASSED},
    "/v1/messages/batches": ANTHROPIC,
    "/v1beta/files": GEMINI,
    "/upload/v1/files": GEMINI,
    "/upload/v1beta/files": GEMINI,
    "/v1beta/batches": GEMINI,
}


def endpoint_at(path: str) -> Endpoint | None:
    """The endpoint at a path, or None.

    >>> endpoint_at("/v1/messages").front
    'anthropic'
    >>> endpoint_at("/v1beta/models/gemini-3:countTokens")[:2]
    ('count', 'gemini')
    """
    found = EXACT.get(path)
    if found is not None:
        return found
    if path.startswith(_PAGE):
        return _page(path)
    version, _, rest = path[1:].partition("/")
    if version == "responses":
        version, rest = "v1", path[1:]
    folder, _, name = rest.partition("/")
    if folder == "models" and name and version in {"v1", "v1beta"}:
        return _model(name, version)
    if version == "v1" and name and folder in {"responses", "conversations"}:
        own, _, action = name.partition("/")
        kind = "response" if folder == "responses" else "conversation"
        return Endpoint(kind, RESPONSES, _ANY, own, action)
    return _hosted(path)


_FRONTS = (
    (re.compile(r"/messages"), ANTHROPIC),
    (re.compile(r"/v1beta\b|/upload/|/models/[^/]+:[a-z]+\b"), GEMINI),
    (re.compile(r"/api/"), OLLAMA),
)
_FRONT_HEADERS = {b"anthropic-version": ANTHROPIC, b"x-goog-api-key": GEMINI}


def front_of(path: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The dialect of the client of an unknown or malformed path, to refuse it in.

    >>> front_of("//V1/Messages/", [])
    'anthropic'
    """
    path = path.lower()
    for pattern, front in _FRONTS:
        if pattern.search(path):
            return front
    return next((_FRONT_HEADERS[name] for name, _ in headers if name in _FRONT_HEADERS), CHAT)


def _model(name: str, version: str) -> Endpoint | None:
    """The endpoint of a model, or of a Gemini action on it: `models/NAME:ACTION`."""
    model, colon, action = name.rpartition(":")
    kind = _ACTIONS.get(action) if colon and model else None
    if kind is not None:
        return Endpoint(kind, GEMINI, _POST, model, action, action.startswith("stream"))
    return Endpoint("model", GEMINI if version == "v1beta" else CHAT, _READ, name)


def _page(path: str) -> Endpoint:
    """A file of the web page, or its API, which resolves its own paths."""
    if path.startswith(_PAGE_API):
        return Endpoint("page-api", CHAT, _ANY | {"PATCH"}, path[len(_PAGE_API) :])
    return Endpoint("page", CHAT, _READ, path[len(_PAGE) :])


def _hosted(path: str) -> Endpoint | None:
    for folder, front in _HOSTED.items():
        if path == folder or path.startswith(f"{folder}/"):
            return Endpoint("hosted", front, _ANY | {"PUT"}, path[len(folder) :].strip("/"))
    return None
