"""What Anthropic has besides Messages: a list of models, counts and files. It embeds nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from dragoman.model.catalogue import ModelInfo
from dragoman.wire.anthropic.dialect import NAME
from dragoman.wire.multipart import form
from dragoman.wire.overlay import overlay_of
from dragoman.wire.services import (
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

_KNOWN = frozenset({"id", "type", "display_name", "created_at", "max_input_tokens"})
# What `count_tokens` takes; it refuses the rest.
_COUNTED = (
    "model", "messages", "system", "tools", "tool_choice", "thinking", "cache_control",
    "output_config", "context_management", "mcp_servers", "anthropic_version",
)  # fmt: skip
_FILES = {"anthropic-beta": "files-api-2025-04-14"}


def decode_models(wire: Any) -> ModelPage:
    """The models of a page."""
    rows = [row for row in objects(wire, "data", NAME) if isinstance(row.get("id"), str)]
    last = wire.get("last_id") or (rows[-1]["id"] if rows else None)
    following = None
    if wire.get("has_more") is True and isinstance(last, str):
        following = {**MODELS.query, "after_id": last}
    return ModelPage([_model(row) for row in rows], following)


def _model(row: dict[str, Any]) -> ModelInfo:
    name, window = row.get("display_name"), row.get("max_input_tokens")
    return ModelInfo(
        row["id"],
        name if isinstance(name, str) else None,
        window if is_number(window) else None,
        _seconds(row.get("created_at")),
        overlay_of(row, _KNOWN, NAME),
    )


def _seconds(text: Any) -> float | None:
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=found.tzinfo or UTC).timestamp() or None  # 1970: not known
    except (ValueError, OverflowError):
        return None


def encode_count(body: Mapping[str, Any], model: str | None) -> dict[str, Any]:
    """What is counted of a request; with its model, where the body has none (Vertex AI)."""
    counted = {key: body[key] for key in _COUNTED if key in body}
    return counted if model is None else {"model": model, **counted}


def decode_count(wire: Any) -> int:
    """The tokens of the prompt."""
    return number_at(wire, "input_tokens", NAME)


def encode_upload(upload: ToUpload) -> Piece:
    """The request that uploads a file."""
    return form(upload, {}, _FILES)


def decode_upload(wire: Any) -> Uploaded:
    """The file's id."""
    return Uploaded(text_at(wire, "id", NAME))


MODELS = ListFormat(decode_models, {"limit": "1000"})
SERVICES = Services(
    models=MODELS,
    counts=CountFormat(encode_count, decode_count),
    uploads=UploadFormat(encode_upload, decode_upload),
)
