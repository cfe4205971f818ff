"""Anthropic's other endpoints: models, token counting and files. There are no embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from dragoman.errors import InvalidRequest
from dragoman.model.catalogue import ModelInfo
from dragoman.wire.anthropic.dialect import NAME
from dragoman.wire.encoded import Encoded
from dragoman.wire.foreign_extras import foreign_losses
from dragoman.wire.model_pages import Page, page_after, page_before, page_size
from dragoman.wire.multipart import form
from dragoman.wire.overlay import fields_of, overlay_of
from dragoman.wire.services import (
    Counted,
    CountFormat,
    ListFormat,
    ModelPage,
    Piece,
    Services,
    ToUpload,
    Uploaded,
    UploadFormat,
    is_number,
    number_at,
    objects,
    text_at,
)
from dragoman.wire.times import encode_time

_KNOWN = frozenset({"id", "type", "display_name", "created_at", "max_input_tokens"})
# Fields that `count_tokens` accepts; it refuses all others.
_COUNTED = (
    "model", "messages", "system", "tools", "tool_choice", "thinking", "cache_control",
    "output_config", "context_management", "mcp_servers", "anthropic_version",
)  # fmt: skip
_UNKNOWN = {"capabilities": None, "lifecycle": "active", "max_tokens": None}
"""Placeholders for unknown fields of a model."""
_DEFAULT_PAGE_SIZE, _MAX_PAGE_SIZE = 20, 1000
_FILES = {"anthropic-beta": "files-api-2025-04-14"}


def decode_models(wire: Any) -> ModelPage:
    """Decode a page of models."""
    rows = [row for row in objects(wire, "data", NAME) if isinstance(row.get("id"), str)]
    last = wire.get("last_id") or (rows[-1]["id"] if rows else None)
    following = None
    if wire.get("has_more") is True and isinstance(last, str):
        following = {**MODELS.query, "after_id": last}
    return ModelPage([_model(row) for row in rows], following)


def encode_models(models: Sequence[ModelInfo], query: Mapping[str, str]) -> Encoded:
    """The requested page of models, forwards or backwards."""
    page = _page(models, query)
    losses = [
        loss
        for place, model in enumerate(page.models)
        for loss in foreign_losses(model.extras, NAME, f"models[{place}].extras")
    ]
    rows = [_row(model) for model in page.models]
    ends = {
        "first_id": rows[0]["id"] if rows else None,
        "last_id": rows[-1]["id"] if rows else None,
    }
    return Encoded({"data": rows, "has_more": page.has_more, **ends}, losses=tuple(losses))


def _page(models: Sequence[ModelInfo], query: Mapping[str, str]) -> Page:
    size = page_size(query, "limit", _DEFAULT_PAGE_SIZE, _MAX_PAGE_SIZE)
    after, before = query.get("after_id"), query.get("before_id")
    if size == 0 or (after and before):
        msg = "limit must be at least 1, and only one of after_id and before_id can be set"
        raise InvalidRequest(msg, status=400)
    return page_before(models, before, size) if before else page_after(models, after or None, size)


def decode_model(wire: Any) -> ModelInfo:
    """Decode a single model."""
    text_at(wire, "id", NAME)
    return _model(wire)


def encode_model(model: ModelInfo) -> Encoded:
    """Encode a single model."""
    return Encoded(_row(model), losses=tuple(foreign_losses(model.extras, NAME, "extras")))


def _model(row: dict[str, Any]) -> ModelInfo:
    name, window = row.get("display_name"), row.get("max_input_tokens")
    return ModelInfo(
        row["id"],
        name if isinstance(name, str) else None,
        window if is_number(window) else None,
        _seconds(row.get("created_at")),
        overlay_of(row, _KNOWN, NAME),
    )


def _row(model: ModelInfo) -> dict[str, Any]:
    """Encode a model with all fields that the SDK's types require."""
    row = {
        "type": "model",
        "id": model.id,
        "display_name": model.id if model.name is None else model.name,
        "created_at": encode_time(model.created),
        "max_input_tokens": model.context_window,
    }
    return {**_UNKNOWN, **fields_of(model.extras, NAME), **row}


def _seconds(text: Any) -> float | None:
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=found.tzinfo or UTC).timestamp() or None  # 1970 means unknown
    except (ValueError, OverflowError):
        return None


def encode_count(body: Mapping[str, Any], model: str | None) -> dict[str, Any]:
    """The countable part of a request body; adds the model if the body has none (Vertex AI)."""
    counted = {key: body[key] for key in _COUNTED if key in body}
    return counted if model is None else {"model": model, **counted}


def decode_count_request(wire: Mapping[str, Any], _path: str | None) -> Counted:
    """Decode a token counting request, ignoring settings that don't count."""
    return Counted(wire)


def decode_count(wire: Any) -> int:
    """Decode the number of prompt tokens."""
    return number_at(wire, "input_tokens", NAME)


def encode_count_response(tokens: int) -> dict[str, Any]:
    """Encode the number of prompt tokens."""
    return {"input_tokens": tokens}


def encode_upload(upload: ToUpload) -> Piece:
    """Encode a file upload request."""
    return form(upload, {}, _FILES)


def decode_upload(wire: Any) -> Uploaded:
    """Decode the id of an uploaded file."""
    return Uploaded(text_at(wire, "id", NAME))


MODELS = ListFormat(decode_models, {"limit": "1000"}, decode_model, encode_models, encode_model)
SERVICES = Services(
    models=MODELS,
    counts=CountFormat(encode_count, decode_count, decode_count_request, encode_count_response),
    uploads=UploadFormat(encode_upload, decode_upload),
)
