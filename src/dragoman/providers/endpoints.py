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
    wraps_counts: bool = False
    """Whether what is counted names its model: Google's own API, in an envelope; Vertex AI."""
    models: str | None = None
    """For the list of models."""
    upload: str | None = None
    """For files that messages name."""


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
"""By dialect, as its vendor has them."""


def without_counting(dialect: str) -> dict[str, Endpoints]:
    """A vendor's endpoints at a place that does not count tokens.

    >>> without_counting("openai-responses")["openai-responses"].count is None
    True
    """
    return {dialect: USUAL[dialect].replace(count=None)}
