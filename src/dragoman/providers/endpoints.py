"""Where each dialect's requests go, below a provider's address."""

from __future__ import annotations

from dragoman.model.value import Value


class Endpoints(Value, frozen=True, kw_only=True):
    """Paths; `{model}` and what else stands in braces is filled in."""

    generate: str
    stream: str | None = None
    """For a streamed answer, where that is another path."""
    embed: str | None = None
    count: str | None = None
    """For counting tokens."""
    models: str | None = None
    """For the list of models."""


USUAL = {
    "openai-chat": Endpoints(generate="/chat/completions", embed="/embeddings", models="/models"),
    "openai-responses": Endpoints(
        generate="/responses",
        count="/responses/input_tokens",
        embed="/embeddings",
        models="/models",
    ),
    "anthropic": Endpoints(
        generate="/v1/messages", count="/v1/messages/count_tokens", models="/v1/models"
    ),
    "gemini": Endpoints(
        generate="/v1beta/models/{model}:generateContent",
        stream="/v1beta/models/{model}:streamGenerateContent?alt=sse",
        embed="/v1beta/models/{model}:batchEmbedContents",
        count="/v1beta/models/{model}:countTokens",
        models="/v1beta/models",
    ),
    "ollama": Endpoints(generate="/api/chat", embed="/api/embed", models="/api/tags"),
}
"""By dialect, as its vendor has them."""
