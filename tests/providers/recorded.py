"""Which provider a recorded request was sent to, and the target that it has to fit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import dragoman
from dragoman import Provider, Request, Target
from tests.corpus import Corpus
from tests.wire.recorded import Body, bodies
from tests.wire.test_refused import FAULTY

_HOSTS = (
    (r"api\.openai\.com", "openai"),
    (r"RESOURCE\.", "azure"),
    (r"api\.groq\.com", "groq"),
    (r"api\.mistral\.ai", "mistral"),
    (r"api\.deepseek\.com", "deepseek"),
    (r"openrouter\.ai", "openrouter"),
    (r"api\.x\.ai", "xai"),
    (r"api\.perplexity\.ai", "perplexity"),
    (r"localhost-llamacpp", "llama.cpp"),
    (r"localhost:8000", "vllm"),
    (r".*:11434|ollama\.com", "ollama"),
    (r"api\.anthropic\.com", "anthropic"),
    (r"generativelanguage", "google"),
    (r".*aiplatform", "vertex"),
)
_SHORT = 16
_REDACTED = re.compile(r"call_REDACTED_(\d)")


def provider_of(body: Body) -> Provider | None:
    """The provider behind a recording's host; any other Chat server is a compatible one."""
    host = body.recording.row.host
    if "__vllm" in body.recording.row.file:
        host = "localhost:8000"  # its client gave OpenAI's address
    for pattern, name in _HOSTS:
        if re.match(pattern, host):
            found = dragoman.provider(name)
            return found if body.dialect.name in found.dialects else None
    return dragoman.provider("openai-compatible") if body.dialect.name == "openai-chat" else None


def accepted(corpus: Corpus, dialect: str) -> Iterator[tuple[Body, Request, Target]]:
    """The accepted requests of a dialect, with their targets: provider and model as recorded."""
    for body in bodies(corpus, dialect):
        provider = provider_of(body) if body.kind == "request" else None
        if provider is None or body.recording.row.file in FAULTY:
            continue
        found = re.search(r"/models/([^:/]+)", body.path)
        model = body.wire.get("model") or (found[1] if found else None)
        target = provider.target(model, dialect)
        if target.tool_id_length < _SHORT:
            # The recorder put its own words for the ids, which such hosts would refuse (C1).
            body = Body(body.dialect, body.kind, _with_ids(body.wire), body.path, body.recording)  # noqa: PLW2901
        request = body.decode()
        assert isinstance(request, Request)
        yield body, request, target


def _with_ids(wire: Any) -> Any:
    if isinstance(wire, dict):
        return {key: _with_ids(value) for key, value in wire.items()}
    if isinstance(wire, list):
        return [_with_ids(item) for item in wire]
    return _REDACTED.sub(r"REDACTED\1", wire) if isinstance(wire, str) else wire
