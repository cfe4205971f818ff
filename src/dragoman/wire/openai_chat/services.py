"""OpenAI's other endpoints."""

from __future__ import annotations

from dragoman.wire.openai_services import EMBEDDINGS, MODELS, UPLOADS
from dragoman.wire.services import Services

SERVICES = Services(
    embeddings=EMBEDDINGS,
    models=MODELS,
    uploads=UPLOADS,
    prompt_front="dragoman.wire.openai_chat.services_completions",
)
