"""Request fields that only one dialect has are left out for others, and reported (I14)."""

from __future__ import annotations

import re
from typing import Any

import pytest

import dragoman

STRANGE: dict[str, tuple[dict[str, Any], str | None, list[str]]] = {
    "openai-chat": (
        {"model": "m", "logit_bias": {"1": -1}, "user": None, "odd name!": 1,
         "messages": [{"role": "user", "content": "Hi", "prefix": True, "gone": None},
                      {"role": "assistant", "content": None, "tool_calls": [
                          {"id": "1", "type": "function", "index": 0,
                           "function": {"name": "f", "arguments": "{}"}}]},
                      {"role": "tool", "tool_call_id": "1", "content": "x"}]},
        None,
        ["extras", "extras.logit_bias", "messages[0].extras"],
    ),
    "anthropic": (
        {"model": "m", "max_tokens": 5, "mcp_servers": [{"type": "url"}],
         "messages": [{"role": "user", "content": "Hi"}]},
        None,
        ["extras.mcp_servers"],
    ),
    "gemini": (
        {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
         "safetySettings": [{"category": "x", "threshold": "y"}], "cachedContent": "c"},
        "/v1beta/models/m:generateContent",
        ["extras.safetySettings", "state.cached_content"],
    ),
    "openai-responses": (
        {"model": "m", "input": "Hi", "truncation": "auto", "background": True},
        None,
        ["context_management.truncate", "extras.background"],
    ),
    "ollama": (
        {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "keep_alive": 0},
        None,
        ["extras.keep_alive"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("target", dragoman.dialects())
@pytest.mark.parametrize("source", STRANGE)
def test_unsupported_request_fields_are_reported(source: str, target: str) -> None:
    """Each field that the target lacks is a loss; in its own dialect there are none."""
    body, path, left = STRANGE[source]
    encoded = dragoman.translate(body, source=source, target=target, path=path)
    found = {loss.path for loss in encoded.losses}
    told = sorted(path for path in found if re.search("extras|state|context", path))
    assert told == ([] if source == target else left)


def test_arbitrary_field_names_are_not_quoted() -> None:
    """A field's name is in the report only if it looks like an identifier."""
    body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "my secret is": 1}
    encoded = dragoman.translate(body, source="openai-chat", target="anthropic")
    assert "secret" not in str([(loss.path, loss.reason) for loss in encoded.losses])
