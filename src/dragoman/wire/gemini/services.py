"""What Gemini has besides answers: embeddings, a list of models, counts and files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from dragoman.errors import WireError
from dragoman.model.catalogue import ModelInfo
from dragoman.model.jsontext import dumps
from dragoman.model.usage import Usage
from dragoman.wire.gemini.dialect import NAME, bare_model
from dragoman.wire.json_values import is_object
from dragoman.wire.overlay import overlay_of
from dragoman.wire.services import (
    CountFormat,
    Embedded,
    EmbeddingFormat,
    ListFormat,
    ModelPage,
    Piece,
    Services,
    ToEmbed,
    ToUpload,
    Uploaded,
    UploadFormat,
    is_number,
    number_at,
    objects,
    text_at,
    vector_of,
)

_KNOWN = frozenset({"name", "displayName", "inputTokenLimit"})
_COUNTED = ("contents", "systemInstruction", "tools", "generationConfig")


def encode_embeddings(asked: ToEmbed) -> dict[str, Any]:
    """The body of `batchEmbedContents`: a request for each text."""
    shared: dict[str, Any] = {"model": f"models/{bare_model(asked.model)}"}
    if asked.dimensions is not None:
        shared["outputDimensionality"] = asked.dimensions
    shared |= asked.extra
    return {
        "requests": [{**shared, "content": {"parts": [{"text": text}]}} for text in asked.texts]
    }


def decode_embeddings(wire: Any) -> Embedded:
    """The embeddings in a body, in the order of the requests."""
    rows = objects(wire, "embeddings", NAME)
    vectors = [
        vector_of(row.get("values"), f"$.embeddings[{place}].values", NAME)
        for place, row in enumerate(rows)
    ]
    counts = wire.get("usageMetadata")
    tokens = counts.get("promptTokenCount") if is_object(counts) else None
    return Embedded(vectors, Usage(tokens) if is_number(tokens) else None)


def decode_models(wire: Any) -> ModelPage:
    """The models of a page; one without any is an empty object."""
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


def encode_count(body: Mapping[str, Any], model: str | None) -> dict[str, Any]:
    """The body of `countTokens`.

    Google's own API takes instructions and tools in a whole request only, which names the model;
    Vertex AI takes them as they are, and some of the other fields not at all.
    """
    if model is None:
        return {key: body[key] for key in _COUNTED if key in body}
    return {"generateContentRequest": {"model": f"models/{bare_model(model)}", **body}}


def decode_count(wire: Any) -> int:
    """The tokens of the prompt, cached ones included. Where there are none, Google says nothing."""
    return 0 if wire == {} else number_at(wire, "totalTokens", NAME)


def encode_upload_start(upload: ToUpload) -> Piece:
    """The request that announces a file."""
    headers = {
        "X-Goog-Upload-Protocol": "resumable",
        "X-Goog-Upload-Command": "start",
        "X-Goog-Upload-Header-Content-Length": str(len(upload.content)),
        "X-Goog-Upload-Header-Content-Type": upload.mime,
    }
    return Piece(headers, dumps({"file": {"displayName": upload.name, "mimeType": upload.mime}}))


def encode_upload(upload: ToUpload) -> Piece:
    """The request that holds the file."""
    headers = {
        "Content-Type": upload.mime,
        "X-Goog-Upload-Command": "upload, finalize",
        "X-Goog-Upload-Offset": "0",
    }
    return Piece(headers, upload.content)


def decode_upload(wire: Any) -> Uploaded:
    """The file's id, and whether it can be used yet: films have to be looked at first."""
    file = wire.get("file", wire) if is_object(wire) else wire
    state = file.get("state") if is_object(file) else None
    if state == "FAILED":
        msg = "the provider could not process the file"
        raise WireError(msg, dialect=NAME, path="$.file.state")
    return Uploaded(text_at(file, "name", NAME), is_ready=state in {None, "ACTIVE"})


def file_place(address: str, file_id: str) -> str:
    """Where a file is, given where it was uploaded to.

    >>> file_place("https://a.example/upload/v1beta/files", "files/x")
    'https://a.example/v1beta/files/x'
    """
    folder = address.partition("?")[0].replace("/upload/", "/", 1)
    return f"{folder}/{quote(file_id.removeprefix('files/'), safe='')}"


_PAGES = {"pageSize": "1000"}
SERVICES = Services(
    embeddings=EmbeddingFormat(encode_embeddings, decode_embeddings, most=100),
    models=ListFormat(decode_models, _PAGES),
    counts=CountFormat(encode_count, decode_count),
    uploads=UploadFormat(
        encode_upload_start, decode_upload, encode_upload, "X-Goog-Upload-URL", file_place
    ),
)
