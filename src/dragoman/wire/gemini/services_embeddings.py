"""Gemini's embeddings: `embedContent` for one content, `batchEmbedContents` for several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.errors import InvalidInputError, InvalidRequest
from dragoman.model.content import AnyPart
from dragoman.model.parts import Text
from dragoman.model.usage import Usage
from dragoman.wire.call_ids import CallIds
from dragoman.wire.embeddings import (
    Embedded,
    EmbeddingFormat,
    EmbeddingInput,
    ToEmbed,
    checked_vectors,
    embedding_losses,
    parts_of,
)
from dragoman.wire.encoded import Encoded
from dragoman.wire.gemini.dialect import (
    NAME,
    ORIGIN,
    TARGET,
    Writing,
    bare_model,
    path_model,
    snake_names,
)
from dragoman.wire.gemini.tables import decode_parts, encode_parts
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.losses import Loss
from dragoman.wire.overlay import extras_of, fields_of
from dragoman.wire.reading import Reading
from dragoman.wire.services import is_number, objects, optional, positive, refuse, vector_of

_NAMES = snake_names("taskType", "outputDimensionality", "embedContentConfig")
_CONFIG = "embedContentConfig"
_PER_REQUEST = frozenset({"content", "title", "model"})
"""Fields that may differ between the requests of a batch; all others must be the same."""
_SETTINGS = frozenset({"taskType", "outputDimensionality"})
_SINGLE = "single"


# --- requests


def encode_embeddings(request: ToEmbed) -> Encoded:
    """The body of `batchEmbedContents`, with a request for each input."""
    losses = list(embedding_losses(request, NAME, ("task", "titles")))
    shared: dict[str, Any] = {"model": f"models/{bare_model(request.model)}"}
    if request.task is not None:
        shared["taskType"] = request.task
    if request.dimensions is not None:
        shared["outputDimensionality"] = request.dimensions
    shared |= {**fields_of(request.extras, NAME), **request.extra}
    requests = [
        {**shared, **title, "content": {"parts": parts}}
        for title, parts in zip(_titles(request), _contents(request, losses), strict=True)
    ]
    return Encoded({"requests": requests}, losses=tuple(losses))


def _titles(request: ToEmbed) -> list[dict[str, str]]:
    titles = request.titles or [None] * len(request.inputs)
    return [{} if title is None else {"title": title} for title in titles]


def _contents(request: ToEmbed, losses: list[Loss]) -> list[list[Any]]:
    """The parts of each input."""
    writing = Writing(TARGET)
    writing.place = "inputs[{}][{}]"
    found = [_parts(given, place, writing) for place, given in enumerate(request.inputs)]
    losses += writing.losses
    return found


def _parts(given: EmbeddingInput, place: int, writing: Writing) -> list[Any]:
    if isinstance(given, str):
        return [{"text": given}]
    parts = encode_parts(parts_of(given), place, writing)
    if not parts:
        msg = "this model can't embed token ids or unsupported content"
        raise InvalidInputError(msg)
    return parts


def decode_embedding_request(wire: Mapping[str, Any], path: str | None) -> ToEmbed:
    """Decode an embedding request of either method."""
    if "requests" not in wire:
        return _decode_uniform([_config_lifted(_named(wire))], path, _SINGLE)
    requests = wire["requests"]
    if not is_list(requests) or not requests or not all(map(is_object, requests)):
        refuse("a list of requests", "$.requests", NAME)
    if len(wire) > 1 and not wire.keys() <= {"requests", "model"}:
        refuse("only requests, without other fields", "$", NAME)
    return _decode_uniform([_config_lifted(_named(request)) for request in requests], path, None)


def _named(wire: Mapping[str, Any]) -> dict[str, Any]:
    """The fields with the API's own names."""
    return {_NAMES.get(key, key): value for key, value in wire.items()}


def _config_lifted(wire: dict[str, Any]) -> dict[str, Any]:
    """Move Vertex AI's nested settings to the top level."""
    config = wire.get(_CONFIG)
    if not is_object(config):
        return wire
    named = _named(config)
    lifted = {key: named.pop(key) for key in ("title", *_SETTINGS) if key in named}
    rest = {key: value for key, value in wire.items() if key != _CONFIG}
    return {**lifted, **rest, **({_CONFIG: named} if named else {})}


def _decode_uniform(
    requests: Sequence[dict[str, Any]], path: str | None, form: str | None
) -> ToEmbed:
    """Decode requests that differ only in contents and titles."""
    first = requests[0]
    shared = {key: value for key, value in first.items() if key not in _PER_REQUEST}
    for other in requests[1:]:
        if {key: value for key, value in other.items() if key not in _PER_REQUEST} != shared:
            msg = "all requests of a batch must have the same settings"
            raise InvalidRequest(msg, status=400)
    titles = [optional(request, "title", str, NAME) for request in requests]
    left = {key: value for key, value in shared.items() if key not in _SETTINGS}
    return ToEmbed(
        _model(requests, path),
        [_decode_input(request.get("content")) for request in requests],
        positive(first, "outputDimensionality", NAME),
        task=optional(first, "taskType", str, NAME),
        titles=titles if any(title is not None for title in titles) else (),
        extras=extras_of(left, NAME),
        answer_form=form,
    )


def _model(requests: Sequence[Mapping[str, Any]], path: str | None) -> str:
    """The model, from the path or the requests."""
    named = {optional(request, "model", str, NAME) for request in requests}
    models = {bare_model(name) for name in named if name}
    models |= {model} if (model := path_model(path)) else set()
    if len(models) == 1:
        return models.pop()
    msg = "the path and all requests must have the same model" if models else "no model is given"
    raise InvalidRequest(msg, status=400)


def _decode_input(content: Any) -> EmbeddingInput:
    """Decode a content; a single text becomes a string."""
    parts = content.get("parts") if is_object(content) else None
    if is_object(parts):
        parts = [parts]
    if not is_list(parts) or not parts or not content.keys() <= {"parts", "role"}:
        return refuse("a content with parts", "$.content", NAME)
    found: tuple[AnyPart, ...] = decode_parts(parts, Reading(ORIGIN, CallIds()))
    only = found[0] if len(found) == 1 else None
    return only.text if type(only) is Text and only == Text(only.text) else found


# --- responses


def decode_embeddings(wire: Any) -> Embedded:
    """Decode embeddings, in the order of the requests."""
    rows = [wire["embedding"]] if _is_single(wire) else objects(wire, "embeddings", NAME)
    vectors = [
        vector_of(row.get("values"), f"$.embeddings[{place}].values", NAME)
        for place, row in enumerate(rows)
    ]
    counts = wire.get("usageMetadata")
    tokens = counts.get("promptTokenCount") if is_object(counts) else None
    return Embedded(vectors, Usage(tokens) if is_number(tokens) else None)


def _is_single(wire: Any) -> bool:
    return is_object(wire) and "embeddings" not in wire and is_object(wire.get("embedding"))


def encode_embedding_response(embedded: Embedded, request: ToEmbed) -> Encoded:
    """Encode embeddings for a client, in the format of its request."""
    rows = [{"values": list(vector)} for vector in checked_vectors(embedded, request)]
    body: dict[str, Any] = {"embeddings": rows}
    if request.answer_form == _SINGLE:
        body = {"embedding": rows[0]}
    usage = embedded.usage
    if usage is not None:
        body["usageMetadata"] = {
            "promptTokenCount": usage.total_input,
            "totalTokenCount": usage.total,
        }
    return Encoded(body)


EMBEDDINGS = EmbeddingFormat(
    encode_embeddings, decode_embeddings, 100, decode_embedding_request, encode_embedding_response
)
