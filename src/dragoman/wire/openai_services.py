"""OpenAI's embeddings, model lists and uploads, shared by its two dialects.

The functions for servers are next to those for clients.
"""

from __future__ import annotations

import binascii
import sys
from array import array
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from dragoman.errors import ServerError, WireError
from dragoman.model.catalogue import ModelInfo
from dragoman.model.ids import new_id
from dragoman.model.usage import Usage
from dragoman.wire.embeddings import (
    Embedded,
    EmbeddingFormat,
    ToEmbed,
    checked_vectors,
    decode_inputs,
    embedding_losses,
    is_tokens,
    plain_texts,
)
from dragoman.wire.encoded import Encoded
from dragoman.wire.foreign_extras import foreign_losses
from dragoman.wire.json_values import is_object
from dragoman.wire.losses import Loss
from dragoman.wire.multipart import form
from dragoman.wire.overlay import extras_of, fields_of, overlay_of
from dragoman.wire.services import (
    ListFormat,
    ModelPage,
    Piece,
    ToUpload,
    Uploaded,
    UploadFormat,
    is_number,
    objects,
    optional,
    positive,
    refuse,
    text_at,
    vector_of,
)

_NAME = "openai"
_SINGLE = 4  # bytes per number in base64
# The names that Groq, OpenRouter, Mistral and vLLM use for the context window.
_WINDOWS = ("context_window", "context_length", "max_context_length", "max_model_len")
_KNOWN = frozenset({"id", "created", "name", "object", *_WINDOWS})
_ASKED = frozenset({"model", "input", "dimensions", "user", "encoding_format"})
_BASE64 = "base64"
_OWNER = "system"  # for models without a known owner; clients require one

# --- embeddings


def encode_embeddings(asked: ToEmbed) -> Encoded:
    """Encode a request for embeddings."""
    losses = list(embedding_losses(asked, _NAME, ("user",)))
    body: dict[str, Any] = {"model": asked.model, "input": _inputs(asked, losses)}
    if asked.dimensions is not None:
        body["dimensions"] = asked.dimensions
    if asked.user is not None:
        body["user"] = asked.user
    body |= {**fields_of(asked.extras, _NAME), **asked.extra}
    return Encoded(body, losses=tuple(losses))


def _inputs(asked: ToEmbed, losses: list[Loss]) -> list[Any]:
    """Texts or token ids: a request can't mix the two."""
    if asked.inputs and all(map(is_tokens, asked.inputs)):
        return [list(tokens) for tokens in asked.inputs]
    return plain_texts(asked, losses)


def decode_embedding_request(wire: Mapping[str, Any], _path: str | None) -> ToEmbed:
    """Decode a client's request for embeddings."""
    answer_form = optional(wire, "encoding_format", str, _NAME)
    if answer_form not in {None, "float", _BASE64}:
        refuse("float or base64", "$.encoding_format", _NAME)
    left = {key: value for key, value in wire.items() if key not in _ASKED}
    return ToEmbed(
        text_at(wire, "model", _NAME),
        decode_inputs(wire.get("input"), _NAME, "$.input", takes_tokens=True),
        positive(wire, "dimensions", _NAME),
        user=optional(wire, "user", str, _NAME),
        extras=extras_of(left, _NAME),
        answer_form=answer_form,
    )


def decode_embeddings(wire: Any) -> Embedded:
    """Decode the embeddings in a body, ordered by `index`."""
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
        raw = b"?"  # too short for a number, so it is refused below
    if len(raw) % _SINGLE == 0:
        return _numbers(raw)
    msg = f"expected base64-encoded numbers at {path}"
    raise WireError(msg, dialect=_NAME, path=path)


def encode_embedding_response(embedded: Embedded, asked: ToEmbed) -> Encoded:
    """Encode embeddings for a client, as numbers or base64."""
    write = _base64 if asked.answer_form == _BASE64 else list
    rows = [
        {"object": "embedding", "index": place, "embedding": write(vector)}
        for place, vector in enumerate(checked_vectors(embedded, asked))
    ]
    model, usage = embedded.model or asked.model, _encode_usage(embedded.usage)
    made = new_id("embd-")  # Mistral's SDK requires an id
    return Encoded({"id": made, "object": "list", "data": rows, "model": model, "usage": usage})


def _numbers(raw: bytes) -> tuple[float, ...]:
    numbers = array("f", raw)
    if sys.byteorder == "big":
        numbers.byteswap()
    return tuple(numbers)


def _base64(vector: Sequence[float]) -> str:
    numbers = array("f", vector)
    if not all(map(isfinite, numbers)):
        msg = "an embedding has a value that doesn't fit a 32-bit float"
        raise ServerError(msg)
    if sys.byteorder == "big":
        numbers.byteswap()
    return b64encode(numbers.tobytes()).decode("ascii")


def _usage(wire: Any) -> Usage | None:
    if not is_object(wire):
        return None
    asked, total = wire.get("prompt_tokens"), wire.get("total_tokens")
    tokens = asked if is_number(asked) else total
    if not is_number(tokens):
        return None
    return Usage(tokens, reported_total=total if is_number(total) else None)


def _encode_usage(usage: Usage | None) -> dict[str, int]:
    """The token counts, which every client's types require."""
    known = Usage() if usage is None else usage
    return {"prompt_tokens": known.total_input, "total_tokens": known.total}


# --- models


def decode_models(wire: Any) -> ModelPage:
    """Decode a model list: in `data`, or a bare list as some servers send."""
    rows = objects(wire, "data" if is_object(wire) else None, _NAME)
    return ModelPage([_model(row) for row in rows if isinstance(row.get("id"), str)])


def encode_models(models: Sequence[ModelInfo], _query: Mapping[str, str]) -> Encoded:
    """Encode the whole model list: there is no pagination."""
    losses = [
        loss
        for place, model in enumerate(models)
        for loss in foreign_losses(model.extras, _NAME, f"models[{place}].extras")
    ]
    return Encoded({"object": "list", "data": [*map(_row, models)]}, losses=tuple(losses))


def decode_model(wire: Any) -> ModelInfo:
    """Decode a single model."""
    text_at(wire, "id", _NAME)
    return _model(wire)


def encode_model(model: ModelInfo) -> Encoded:
    """Encode a single model."""
    return Encoded(_row(model), losses=tuple(foreign_losses(model.extras, _NAME, "extras")))


def _model(row: dict[str, Any]) -> ModelInfo:
    name, created = row.get("name"), row.get("created")
    return ModelInfo(
        row["id"],
        name if isinstance(name, str) else None,
        next((row[key] for key in _WINDOWS if is_number(row.get(key))), _trained(row)),
        created if is_number(created) and created else None,
        overlay_of(row, _KNOWN, _NAME),
    )


def _row(model: ModelInfo) -> dict[str, Any]:
    row: dict[str, Any] = {"id": model.id, "object": "model", "created": int(model.created or 0)}
    if model.name is not None:
        row["name"] = model.name
    if model.context_window is not None:
        row[_WINDOWS[0]] = model.context_window
    return {"owned_by": _OWNER, **fields_of(model.extras, _NAME), **row}


def _trained(row: dict[str, Any]) -> int | None:
    """The context window the model was trained with, as llama.cpp reports it."""
    meta = row.get("meta")
    window = meta.get("n_ctx_train") if is_object(meta) else None
    return window if is_number(window) else None


# --- uploads


def encode_upload(upload: ToUpload) -> Piece:
    """Encode the upload of a file for use in messages."""
    return form(upload, {"purpose": "user_data"}, {})


def decode_upload(wire: Any) -> Uploaded:
    """Decode the uploaded file's id."""
    return Uploaded(text_at(wire, "id", _NAME))


EMBEDDINGS = EmbeddingFormat(
    encode_embeddings, decode_embeddings, 2048, decode_embedding_request, encode_embedding_response
)
MODELS = ListFormat(
    decode_models, decode_model=decode_model, encode=encode_models, encode_model=encode_model
)
UPLOADS = UploadFormat(encode_upload, decode_upload)
