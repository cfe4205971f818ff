"""Ollama's other endpoints: embeddings, and lists of installed and running models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dragoman.model.catalogue import ModelInfo
from dragoman.model.usage import Usage
from dragoman.wire.embeddings import (
    Embedded,
    EmbeddingFormat,
    ToEmbed,
    checked_vectors,
    decode_inputs,
    embedding_losses,
    plain_texts,
)
from dragoman.wire.encoded import Encoded
from dragoman.wire.foreign_extras import foreign_losses
from dragoman.wire.json_values import is_object
from dragoman.wire.losses import Loss
from dragoman.wire.ollama.response import decode_time
from dragoman.wire.overlay import extras_of, fields_of, overlay_of
from dragoman.wire.services import (
    ListFormat,
    ModelPage,
    Services,
    is_number,
    objects,
    optional,
    positive,
    text_at,
    vector_of,
)
from dragoman.wire.times import encode_time

_NAME = "ollama"
_KNOWN = frozenset({"name", "model", "modified_at"})
_WINDOW = "context_length"
_LEGACY = "legacy"
_COUNT = "prompt_eval_count"
_DETAILS = {"parent_model": "", "format": "", "family": "", "families": None,
            "parameter_size": "", "quantization_level": ""}  # fmt: skip
_ROW = {"size": 0, "digest": ""}
"""Placeholders for unknown fields of a model that clients' types require."""

# --- embeddings: `/api/embed`, and `/api/embeddings` for older clients


def encode_embeddings(request: ToEmbed) -> Encoded:
    """The body of `/api/embed`."""
    losses = list(embedding_losses(request, _NAME, ()))
    body: dict[str, Any] = {"model": request.model, "input": plain_texts(request, losses)}
    if request.dimensions is not None:
        body["dimensions"] = request.dimensions
    body |= {**fields_of(request.extras, _NAME), **request.extra}
    return Encoded(body, losses=tuple(losses))


def decode_embedding_request(wire: Mapping[str, Any], path: str | None) -> ToEmbed:
    """Decode an embedding request; one without input just loads the model."""
    if _is_legacy(wire, path):
        prompt = optional(wire, "prompt", str, _NAME)
        key, inputs, form = "prompt", [prompt] if prompt else [], _LEGACY
    else:
        given, key, form = wire.get("input"), "input", None
        is_empty = given is None or given in ("", [])
        inputs = [] if is_empty else decode_inputs(given, _NAME, "$.input", takes_tokens=False)
    left = {name: wire[name] for name in wire if name not in {"model", key, "dimensions"}}
    return ToEmbed(
        text_at(wire, "model", _NAME),
        inputs,
        positive(wire, "dimensions", _NAME),
        extras=extras_of(left, _NAME),
        answer_form=form,
    )


def _is_legacy(wire: Mapping[str, Any], path: str | None) -> bool:
    if path is None:
        return "prompt" in wire and "input" not in wire
    return path.partition("?")[0].endswith("/embeddings")


def decode_embeddings(wire: Any) -> Embedded:
    """Decode embeddings, in the order of the inputs."""
    rows = wire.get("embeddings") if is_object(wire) else None
    if is_object(wire) and "embeddings" not in wire and "embedding" in wire:
        rows = [wire["embedding"]]
    if not isinstance(rows, list):
        rows = [rows]  # `vector_of` then reports it as an invalid vector
    paths = (f"$.embeddings[{place}]" for place in range(len(rows)))
    vectors = [vector_of(row, path, _NAME) for row, path in zip(rows, paths, strict=True)]
    tokens, model = wire.get(_COUNT), wire.get("model")
    usage = Usage(tokens) if is_number(tokens) else None
    return Embedded(vectors, usage, model if isinstance(model, str) else None)


def encode_embedding_response(embedded: Embedded, request: ToEmbed) -> Encoded:
    """Encode embeddings for a client, in the format of its request."""
    rows = [list(vector) for vector in checked_vectors(embedded, request)]
    usage = embedded.usage
    if request.answer_form == _LEGACY:
        lost = () if usage is None else (Loss("usage", "token counts are not supported"),)
        return Encoded({"embedding": rows[0] if rows else []}, losses=lost)
    body: dict[str, Any] = {"model": embedded.model or request.model, "embeddings": rows}
    if usage is not None:
        body[_COUNT] = usage.total_input
    return Encoded(body)


# --- models: the installed ones, a single one, and the running ones


def decode_models(wire: Any) -> ModelPage:
    """Decode the list of installed models."""
    named = [(row.get("model") or row.get("name"), row) for row in objects(wire, "models", _NAME)]
    return ModelPage([_model(name, row) for name, row in named if isinstance(name, str)])


def _model(name: str, row: dict[str, Any]) -> ModelInfo:
    details = row.get("details")
    window = details.get(_WINDOW) if is_object(details) else row.get(_WINDOW)
    return ModelInfo(
        name,
        None,
        window if is_number(window) else None,
        decode_time(row.get("modified_at")) or None,  # 1970 means unknown
        overlay_of(row, _KNOWN, _NAME),
    )


def encode_models(models: Sequence[ModelInfo], _query: Mapping[str, str]) -> Encoded:
    """The body of `/api/tags`, which has no pages."""
    return _encode_list(models, _row)


def encode_running(models: Sequence[ModelInfo]) -> Encoded:
    """The body of `/api/ps`."""
    return _encode_list(models, _running_row)


def _encode_list(
    models: Sequence[ModelInfo], write: Callable[[ModelInfo], dict[str, Any]]
) -> Encoded:
    losses = [
        loss for place, model in enumerate(models) for loss in _losses(model, f"models[{place}].")
    ]
    return Encoded({"models": [*map(write, models)]}, losses=tuple(losses))


def _row(model: ModelInfo) -> dict[str, Any]:
    own = fields_of(model.extras, _NAME)
    named = {"name": model.id, "model": model.id, "modified_at": encode_time(model.created)}
    return {**named, **_ROW, **own, "details": _details(model), **named}


def _running_row(model: ModelInfo) -> dict[str, Any]:
    row = {"size_vram": 0, "expires_at": encode_time(None), **_row(model)}
    del row["modified_at"]
    return row if model.context_window is None else {**row, _WINDOW: model.context_window}


def _details(model: ModelInfo) -> dict[str, Any]:
    own = fields_of(model.extras, _NAME).get("details")
    details = {**_DETAILS, **(own if isinstance(own, Mapping) else {})}
    return details if model.context_window is None else {**details, _WINDOW: model.context_window}


def _losses(model: ModelInfo, path: str) -> Iterator[Loss]:
    yield from foreign_losses(model.extras, _NAME, f"{path}extras")
    if model.name is not None and model.name != model.id:
        yield Loss(f"{path}name", "model names that differ from the id are not supported")


def decode_name(wire: Mapping[str, Any]) -> str:
    """The model in a request to `/api/show`; older clients send it as `name`."""
    key = "name" if optional(wire, "model", str, _NAME) in {None, ""} else "model"
    return text_at(wire, key, _NAME)


def encode_model(model: ModelInfo) -> Encoded:
    """The body of `/api/show`."""
    family = _details(model).get("family")
    family = family if isinstance(family, str) and family else "unknown"
    info: dict[str, Any] = {"general.architecture": family}
    if model.context_window is not None:
        info[f"{family}.{_WINDOW}"] = model.context_window
    usual = {"modelfile": "", "parameters": "", "template": "", "model_info": info,
             "capabilities": ["completion"]}  # fmt: skip
    described = {"details": _details(model), "modified_at": encode_time(model.created)}
    body = {**usual, **fields_of(model.extras, _NAME), **described}
    return Encoded(body, losses=tuple(_losses(model, "")))


def encode_version(version: str) -> dict[str, Any]:
    """The body of `/api/version`."""
    return {"version": version}


SERVICES = Services(
    embeddings=EmbeddingFormat(
        encode_embeddings,
        decode_embeddings,
        512,
        decode_embedding_request,
        encode_embedding_response,
    ),
    models=ListFormat(
        decode_models, encode=encode_models, encode_model=encode_model, decode_name=decode_name
    ),
    prompt_front="dragoman.wire.ollama.services_generate",
    encode_running=encode_running,
    encode_version=encode_version,
)
