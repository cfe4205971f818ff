"""What Ollama has besides chats: embeddings, and the list of models that are there."""

from __future__ import annotations

from typing import Any

from dragoman.model.catalogue import ModelInfo
from dragoman.model.usage import Usage
from dragoman.wire.json_values import is_object
from dragoman.wire.ollama.response import decode_time
from dragoman.wire.overlay import overlay_of
from dragoman.wire.services import (
    Embedded,
    EmbeddingFormat,
    ListFormat,
    ModelPage,
    Services,
    encode_embeddings,
    is_number,
    objects,
    vector_of,
)

_NAME = "ollama"
_KNOWN = frozenset({"name", "model", "modified_at"})
_WINDOW = "context_length"


def decode_embeddings(wire: Any) -> Embedded:
    """The embeddings in a body, in the order of the texts."""
    rows = wire.get("embeddings") if is_object(wire) else None
    if not isinstance(rows, list):
        rows = [rows]  # what is no list is no vector either, and reported as such
    paths = (f"$.embeddings[{place}]" for place in range(len(rows)))
    vectors = [vector_of(row, path, _NAME) for row, path in zip(rows, paths, strict=True)]
    tokens, model = wire.get("prompt_eval_count"), wire.get("model")
    usage = Usage(tokens) if is_number(tokens) else None
    return Embedded(vectors, usage, model if isinstance(model, str) else None)


def decode_models(wire: Any) -> ModelPage:
    """The models that are there."""
    named = [(row.get("model") or row.get("name"), row) for row in objects(wire, "models", _NAME)]
    return ModelPage([_model(name, row) for name, row in named if isinstance(name, str)])


def _model(name: str, row: dict[str, Any]) -> ModelInfo:
    details = row.get("details")
    window = details.get(_WINDOW) if is_object(details) else row.get(_WINDOW)
    return ModelInfo(
        name,
        None,
        window if is_number(window) else None,
        decode_time(row.get("modified_at")),
        overlay_of(row, _KNOWN, _NAME),
    )


SERVICES = Services(
    embeddings=EmbeddingFormat(encode_embeddings, decode_embeddings, most=512),
    models=ListFormat(decode_models),
)
