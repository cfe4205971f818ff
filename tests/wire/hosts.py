"""The provider that a recorded request was sent to, and its target."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import dragoman
from dragoman import Provider, Target
from tests.corpus import Recording

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
_MODEL_IN_PATH = re.compile(r"/models/([^:/]+)")


def provider_of(recording: Recording, dialect: str) -> Provider | None:
    """The provider behind a recording's host; any other Chat server is a compatible one."""
    host = recording.row.host
    if "__vllm" in recording.row.file:
        host = "localhost:8000"  # its client used OpenAI's address
    for pattern, name in _HOSTS:
        if re.match(pattern, host):
            found = dragoman.provider(name)
            return found if dialect in found.dialects else None
    return dragoman.provider("openai-compatible") if dialect == "openai-chat" else None


def model_of(recording: Recording) -> str | None:
    """The requested model, from the body or the path."""
    body = recording.request_body
    found = _MODEL_IN_PATH.search(recording.request_path)
    told = body.get("model") if isinstance(body, dict) else None
    return told if isinstance(told, str) else found[1] if found else None


def target_of(recording: Recording, dialect: str) -> Target:
    """The provider's model; unknown hosts sign and store nothing."""
    provider = provider_of(recording, dialect)
    if provider is not None:
        return provider.target(model_of(recording), dialect)
    vendors: Target = import_module(f"dragoman.wire.{dialect.replace('-', '_')}.dialect").TARGET
    return vendors.with_flags(
        {
            "thinking.verifies_signatures": False,
            "state.verifies_items": False,
            "sampling.min_output_tokens": 0,
        }
    )


def body_of(recording: Recording, target: Target) -> Any:
    """The request; if a host accepts only short ids, the recorder's placeholders are cut.

    Such hosts would have refused the placeholders (C1).
    """
    body = recording.request_body
    return _with_ids(body) if target.ids.max_length < _SHORT else body


def _with_ids(wire: Any) -> Any:
    if isinstance(wire, dict):
        return {key: _with_ids(value) for key, value in wire.items()}
    if isinstance(wire, list):
        return [_with_ids(item) for item in wire]
    return _REDACTED.sub(r"REDACTED\1", wire) if isinstance(wire, str) else wire
