"""What Ollama has besides chats: embeddings, and the models that are there, or are loaded."""

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
"""What is told of a model of which nobody knows it: clients' types require it."""

# --- embeddings: `/api/embed`, and `/api/embeddings` of older clients


def encode_embeddings(asked: ToEmbed) -> Encoded:
    """The body of `/api/embed`."""
    losses = list(embedding_losses(asked, _NAME, ()))
    body: dict[str, Any] = {"model": asked.model, "input": plain_texts(asked, losses)}
    if asked.dimensions is not None:
        body["dimensions"] = asked.dimensions
    body |= {**fields_of(asked.extras, _NAME), **asked.extra}
    return Encoded(body, losses=tuple(losses))


def decode_embedding_request(wire: Mapping[str, Any], path: str | None) -> ToEmbed:
    """What a client asks to embed; nothing at all just loads the model."""
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
    """The embeddings in a body, in the order of the texts."""
    rows = wire.get("embeddings") if is_object(wire) else None
    if is_object(wire) and "embeddings" not in wire and "embedding" in wire:
        rows = [wire["embedding"]]
    if not isinstance(rows, list):
        rows = [rows]  # what is no list is no vector either, and reported as such
    paths = (f"$.embeddings[{place}]" for place in range(len(rows)))
    vectors = [vector_of(row, path, _NAME) for row, path in zip(rows, paths, strict=True)]
    tokens, model = wire.get(_COUNT), wire.get("model")
    usage = Usage(tokens) if is_number(tokens) else None
    return Embedded(vectors, usage, model if isinstance(model, str) else None)


def encode_embedding_response(embedded: Embedded, asked: ToEmbed) -> Encoded:
    """The embeddings for a client, in the form of its request."""
    rows = [list(vector) for vector in checked_vectors(embedded, asked)]
    usage = embedded.usage
    if asked.answer_form == _LEGACY:
        lost = () if usage is None else (Loss("usage", "there are no counts here"),)
        return Encoded({"embedding": rows[0] if rows else []}, losses=lost)
    body: dict[str, Any] = {"model": embedded.model or asked.model, "embeddings": rows}
    if usage is not None:
        body[_COUNT] = usage.total_input
    return Encoded(body)


# --- models: those that are there, one of them, and those that are loaded


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
        decode_time(row.get("modified_at")) or None,  # 1970: not known
        overlay_of(row, _KNOWN, _NAME),
    )


def encode_models(models: Sequence[ModelInfo], _query: Mapping[str, str]) -> Encoded:
    """The body of `/api/tags`: there are no pages."""
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
        yield Loss(f"{path}name", "models have no names besides their ids here")


def decode_name(wire: Mapping[str, Any]) -> str:
    """The model that a client asks about in `/api/show`; older ones call it `name`."""
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
    told = {"details": _details(model), "modified_at": encode_time(model.created)}
    body = {**usual, **fields_of(model.extras, _NAME), **told}
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
