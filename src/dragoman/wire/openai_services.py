"""OpenAI's embeddings, model lists and uploads, which its two dialects share."""

from __future__ import annotations

import binascii
import sys
from array import array
from base64 import b64decode
from typing import Any

from dragoman.errors import WireError
from dragoman.model.catalogue import ModelInfo
from dragoman.model.usage import Usage
from dragoman.wire.json_values import is_object
from dragoman.wire.multipart import form
from dragoman.wire.overlay import overlay_of
from dragoman.wire.services import (
    Embedded,
    EmbeddingFormat,
    ListFormat,
    ModelPage,
    Piece,
    ToUpload,
    Uploaded,
    UploadFormat,
    encode_embeddings,
    is_number,
    objects,
    text_at,
    vector_of,
)

_NAME = "openai"
_SINGLE = 4  # bytes of a number in base64
# Groq, OpenRouter, Mistral and vLLM tell, each in its own word.
_WINDOWS = ("context_window", "context_length", "max_context_length", "max_model_len")
_KNOWN = frozenset({"id", "created", "name", "object", *_WINDOWS})


def decode_embeddings(wire: Any) -> Embedded:
    """The embeddings in a body, each where its `index` says."""
    rows = objects(wire, "data", _NAME)
    if all(is_number(row.get("index")) for row in rows):
        rows.sort(key=lambda row: row["index"])
    vectors = [_vector(row.get("embedding"), place) for place, row in enumerate(rows)]
    model = wire.get("model")
    return Embedded(vectors, _usage(wire.get("usage")), model if isinstance(model, str) else None)


def _vector(value: Any, place: int) -> tuple[float, ...]:
    path = f"$.data[{place}].embedding"
    if not isinstance(value, str):
        return vector_of(value, path, _NAME)
    try:
        raw = b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raw = b"?"  # no number is that short
    if len(raw) % _SINGLE == 0:
        return _numbers(raw)
    msg = f"expected base64 of numbers at {path}"
    raise WireError(msg, dialect=_NAME, path=path)


def _numbers(raw: bytes) -> tuple[float, ...]:
    numbers = array("f", raw)
    if sys.byteorder == "big":
        numbers.byteswap()
    return tuple(numbers)


def _usage(wire: Any) -> Usage | None:
    if not is_object(wire):
        return None
    asked, total = wire.get("prompt_tokens"), wire.get("total_tokens")
    tokens = asked if is_number(asked) else total
    if not is_number(tokens):
        return None
    return Usage(tokens, reported_total=total if is_number(total) else None)


def decode_models(wire: Any) -> ModelPage:
    """The models in a body: `data`, or a bare list as some have it."""
    rows = objects(wire, "data" if is_object(wire) else None, _NAME)
    return ModelPage([_model(row) for row in rows if isinstance(row.get("id"), str)])


def _model(row: dict[str, Any]) -> ModelInfo:
    name, created = row.get("name"), row.get("created")
    return ModelInfo(
        row["id"],
        name if isinstance(name, str) else None,
        next((row[key] for key in _WINDOWS if is_number(row.get(key))), _trained(row)),
        created if is_number(created) and created else None,
        overlay_of(row, _KNOWN, _NAME),
    )


def _trained(row: dict[str, Any]) -> int | None:
    """llama.cpp says what the model was trained on."""
    meta = row.get("meta")
    window = meta.get("n_ctx_train") if is_object(meta) else None
    return window if is_number(window) else None


def encode_upload(upload: ToUpload) -> Piece:
    """The request that uploads a file for use in messages."""
    return form(upload, {"purpose": "user_data"}, {})


def decode_upload(wire: Any) -> Uploaded:
    """The file's id."""
    return Uploaded(text_at(wire, "id", _NAME))


EMBEDDINGS = EmbeddingFormat(encode_embeddings, decode_embeddings, most=2048)
MODELS = ListFormat(decode_models)
UPLOADS = UploadFormat(encode_upload, decode_upload)
