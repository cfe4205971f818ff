"""Providers by the names that other libraries use, and their dialects."""

from __future__ import annotations

from dragoman.model.parts import Origin

_CHAT = "openai-chat"
_OURS = {  # their names to ours, where they differ
    "google-gla": "google",
    "google-cloud": "vertex",
    "google-vertex": "vertex",
    "google_genai": "google",
    "google_vertexai": "vertex",
    "mistralai": "mistral",
    "azure_openai": "azure",
    "openai-codex": "openai",
}
_DIALECTS = {
    "anthropic": "anthropic",
    "google": "gemini",
    "vertex": "gemini",
    "ollama": "ollama",
    **dict.fromkeys(("groq", "mistral", "deepseek", "openrouter", "xai", "perplexity", "fireworks",
                     "together", "moonshotai", "cerebras", "huggingface", "litellm"), _CHAT),
}  # fmt: skip
_OPENAI = frozenset({"openai", "azure"})
_VENDORS = {
    "anthropic": "anthropic",
    "gemini": "google",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "ollama": "ollama",
}


def origin_at(
    name: object, *, model: object = None, response_id: object = None, is_responses: bool = False
) -> Origin | None:
    """The origin for a response of a provider of that name; None if it is unknown."""
    if not isinstance(name, str):
        return None
    provider = _OURS.get(name, name)
    dialect = _DIALECTS.get(provider)
    if provider in _OPENAI:
        dialect = "openai-responses" if is_responses else _CHAT
    if dialect is None:
        return None
    return Origin(
        dialect=dialect,
        provider=provider,
        model=model if isinstance(model, str) else None,
        response_id=response_id if isinstance(response_id, str) else None,
    )


def provider_of(origin: Origin | None) -> str | None:
    """The provider of an origin, or the vendor of its dialect; None if neither is known."""
    if origin is None:
        return None
    return origin.provider or _VENDORS.get(origin.dialect)
