"""Gemini's other endpoints: embeddings, models, token counting and files."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from dragoman.errors import InvalidRequest, WireError
from dragoman.model.catalogue import ModelInfo
from dragoman.model.jsontext import dumps
from dragoman.wire.encoded import Encoded
from dragoman.wire.foreign_extras import foreign_losses
from dragoman.wire.gemini.dialect import NAME, bare_model, encode_path, path_model
from dragoman.wire.gemini.services_embeddings import EMBEDDINGS
from dragoman.wire.json_values import is_object
from dragoman.wire.losses import Loss
from dragoman.wire.model_pages import page_after, page_size
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
    refuse,
    text_at,
)

_KNOWN = frozenset({"name", "displayName", "inputTokenLimit"})
_METHODS = ("generateContent", "countTokens")
"""Default methods of a model, which many clients look for."""
_DEFAULT_PAGE_SIZE, _MAX_PAGE_SIZE = 50, 1000
_WHOLE = ("generateContentRequest", "generate_content_request")
_COUNTED = ("contents", "systemInstruction", "tools", "generationConfig")


# --- models


def decode_models(wire: Any) -> ModelPage:
    """Decode a page of models; a page without any is an empty object."""
    rows = objects(wire, "models", NAME) if wire != {} else []
    following = wire.get("nextPageToken") if is_object(wire) else None
    return ModelPage(
        [_model(row) for row in rows if isinstance(row.get("name"), str)],
        {**_PAGES, "pageToken": following} if isinstance(following, str) and following else None,
    )


def _model(row: dict[str, Any]) -> ModelInfo:
    name, window = row.get("displayName"), row.get("inputTokenLimit")
    return ModelInfo(
        bare_model(row["name"]),
        name if isinstance(name, str) else None,
        window if is_number(window) else None,
        None,
        overlay_of(row, _KNOWN, NAME),
    )


def _row(model: ModelInfo) -> dict[str, Any]:
    name = model.id if model.id.startswith("tunedModels/") else f"models/{model.id}"
    row: dict[str, Any] = {"name": name}
    if model.name is not None:
        row["displayName"] = model.name
    if model.context_window is not None:
        row["inputTokenLimit"] = model.context_window
    usual = {"version": "", "displayName": model.id, "supportedGenerationMethods": [*_METHODS]}
    return {**usual, **fields_of(model.extras, NAME), **row}


def _losses(model: ModelInfo, path: str) -> list[Loss]:
    losses = list(foreign_losses(model.extras, NAME, f"{path}extras"))
    if model.created is not None:
        losses.append(Loss(f"{path}created", "model creation times are not supported"))
    return losses


def encode_models(models: Sequence[ModelInfo], query: Mapping[str, str]) -> Encoded:
    """The requested page of models."""
    size = page_size(query, "pageSize", _DEFAULT_PAGE_SIZE, _MAX_PAGE_SIZE) or _DEFAULT_PAGE_SIZE
    page = page_after(models, _decode_token(query.get("pageToken")), size)
    losses = [
        loss
        for place, model in enumerate(page.models)
        for loss in _losses(model, f"models[{place}].")
    ]
    body: dict[str, Any] = {"models": [*map(_row, page.models)]}
    if page.has_more:
        body["nextPageToken"] = _encode_token(page.models[-1].id)
    return Encoded(body, losses=tuple(losses))


def _decode_token(token: str | None) -> str | None:
    """The model after which the page begins."""
    try:
        return urlsafe_b64decode(token).decode() if token else None
    except (binascii.Error, ValueError):
        msg = "the pageToken is not valid"
    raise InvalidRequest(msg, status=400)


def _encode_token(model_id: str) -> str:
    return urlsafe_b64encode(model_id.encode("utf-8", "surrogatepass")).decode("ascii")


def decode_model(wire: Any) -> ModelInfo:
    """Decode a single model."""
    text_at(wire, "name", NAME)
    return _model(wire)


def encode_model(model: ModelInfo) -> Encoded:
    """Encode a single model."""
    return Encoded(_row(model), losses=tuple(_losses(model, "")))


# --- counts


def encode_count(body: Mapping[str, Any], model: str | None) -> dict[str, Any]:
    """The body of `countTokens`.

    Google's own API accepts instructions and tools only in a whole request, which includes the
    model. Vertex AI accepts them directly, but refuses some other fields.
    """
    if model is None:
        return {key: body[key] for key in _COUNTED if key in body}
    return {"generateContentRequest": {"model": f"models/{bare_model(model)}", **body}}


def decode_count_request(wire: Mapping[str, Any], path: str | None) -> Counted:
    """Decode a token counting request, which may be wrapped in `generateContentRequest`."""
    found = [wire[key] for key in _WHOLE if key in wire]
    model = path_model(path)
    if found and (len(wire) > 1 or not is_object(found[0])):
        refuse("a whole request or its fields, not both", "$", NAME)
    body = found[0] if found else wire
    return Counted(body, None if model is None else encode_path(model, stream=False))


def decode_count(wire: Any) -> int:
    """Decode the number of prompt tokens, including cached ones. Google omits a zero."""
    return 0 if wire == {} else number_at(wire, "totalTokens", NAME)


def encode_count_response(tokens: int) -> dict[str, Any]:
    """Encode the number of prompt tokens."""
    return {"totalTokens": tokens}


# --- uploads


def encode_upload_start(upload: ToUpload) -> Piece:
    """Encode the request that starts a file upload."""
    headers = {
        "X-Goog-Upload-Protocol": "resumable",
        "X-Goog-Upload-Command": "start",
        "X-Goog-Upload-Header-Content-Length": str(len(upload.content)),
        "X-Goog-Upload-Header-Content-Type": upload.mime,
    }
    return Piece(headers, dumps({"file": {"displayName": upload.name, "mimeType": upload.mime}}))


def encode_upload(upload: ToUpload) -> Piece:
    """Encode the request with the content of the file."""
    headers = {
        "Content-Type": upload.mime,
        "X-Goog-Upload-Command": "upload, finalize",
        "X-Goog-Upload-Offset": "0",
    }
    return Piece(headers, upload.content)


def decode_upload(wire: Any) -> Uploaded:
    """Decode the id of an uploaded file, and whether it is ready: videos are processed first."""
    file = wire.get("file", wire) if is_object(wire) else wire
    state = file.get("state") if is_object(file) else None
    if state == "FAILED":
        msg = "the provider could not process the file"
        raise WireError(msg, dialect=NAME, path="$.file.state")
    return Uploaded(text_at(file, "name", NAME), is_ready=state in {None, "ACTIVE"})


def file_url(address: str, file_id: str) -> str:
    """The URL of a file, given the upload URL.

    >>> file_url("https://a.example/upload/v1beta/files", "files/x")
    'https://a.example/v1beta/files/x'
    """
    folder = address.partition("?")[0].replace("/upload/", "/", 1)
    return f"{folder}/{quote(file_id.removeprefix('files/'), safe='')}"


_PAGES = {"pageSize": "1000"}
SERVICES = Services(
    embeddings=EMBEDDINGS,
    models=ListFormat(decode_models, _PAGES, decode_model, encode_models, encode_model),
    counts=CountFormat(encode_count, decode_count, decode_count_request, encode_count_response),
    uploads=UploadFormat(
        encode_upload_start, decode_upload, encode_upload, "X-Goog-Upload-URL", file_url
    ),
)
