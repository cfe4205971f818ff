"""Where a host answers, by dialect: the paths that its makers document."""

from __future__ import annotations

import pytest

from dragoman.providers.endpoints import USUAL


@pytest.mark.parametrize(
    ("dialect", "paths"),
    [
        (
            "openai-chat",
            {
                "generate": "/chat/completions",
                "embed": "/embeddings",
                "models": "/models",
                "upload": "/files",
            },
        ),
        (
            "openai-responses",
            {
                "generate": "/responses",
                "embed": "/embeddings",
                "count": "/responses/input_tokens",
                "models": "/models",
                "upload": "/files",
            },
        ),
        (
            "anthropic",
            {
                "generate": "/v1/messages",
                "count": "/v1/messages/count_tokens",
                "models": "/v1/models",
                "upload": "/v1/files",
            },
        ),
        (
            "gemini",
            {
                "generate": "/v1beta/models/{model}:generateContent",
                "stream": "/v1beta/models/{model}:streamGenerateContent?alt=sse",
                "embed": "/v1beta/models/{model}:batchEmbedContents",
                "count": "/v1beta/models/{model}:countTokens",
                "models": "/v1beta/models",
                "upload": "/upload/v1beta/files",
            },
        ),
        ("ollama", {"generate": "/api/chat", "embed": "/api/embed", "models": "/api/tags"}),
    ],
)
def test_each_dialect_has_its_vendors_paths(dialect: str, paths: dict[str, str]) -> None:
    """A provider has exactly the vendor's paths; operations without a path are not requested."""
    found = USUAL[dialect]
    kinds = ("generate", "stream", "embed", "count", "models", "upload")
    assert {kind: getattr(found, kind) for kind in kinds if getattr(found, kind)} == paths
