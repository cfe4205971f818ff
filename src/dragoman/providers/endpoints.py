"""URL paths of each dialect's requests, relative to a provider's base URL."""

from __future__ import annotations

from dragoman.model.value import Value


class Endpoints(Value, frozen=True, kw_only=True):
    """Paths of one dialect; `{model}` and other names in braces are filled in."""

    generate: str
    stream: str | None = None
    """For streamed responses, if the path differs."""
    embed: str | None = None
    count: str | None = None
    """For token counting."""
    wraps_counts: bool = False
    """Whether the body of a counting request includes the model (Google's own API, Vertex AI)."""
    models: str | None = None
    """For the list of models."""
    upload: str | None = None
    """For uploaded files."""


USUAL = {
    "openai-chat": Endpoints(
        generate="/chat/completions", embed="/embeddings", models="/models", upload="/files"
    ),
    "openai-responses": Endpoints(
        generate="/responses",
        count="/responses/input_tokens",
        embed="/embeddings",
        models="/models",
        upload="/files",
    ),
    "anthropic": Endpoints(
        generate="/v1/messages",
        count="/v1/messages/count_tokens",
        models="/v1/models",
        upload="/v1/files",
    ),
    "gemini": Endpoints(
        generate="/v1beta/models/{model}:generateContent",
        stream="/v1beta/models/{model}:streamGenerateContent?alt=sse",
        embed="/v1beta/models/{model}:batchEmbedContents",
        count="/v1beta/models/{model}:countTokens",
        wraps_counts=True,
        models="/v1beta/models",
        upload="/upload/v1beta/files",
    ),
    "ollama": Endpoints(generate="/api/chat", embed="/api/embed", models="/api/tags"),
}
"""The vendor's endpoints by dialect."""


def without_counting(dialect: str) -> dict[str, Endpoints]:
    """A vendor's endpoints for a provider that can't count tokens.

    >>> without_counting("openai-responses")["openai-responses"].count is None
    True
    """
    return {dialect: USUAL[dialect].replace(count=None)}
