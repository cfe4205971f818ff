"""Gemini's embeddings: one content in `embedContent`, several in `batchEmbedContents`."""

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
from dragoman.wire.gemini.content import decode_parts, encode_parts
from dragoman.wire.gemini.dialect import (
    NAME,
    ORIGIN,
    TARGET,
    Writing,
    bare_model,
    path_model,
    snake_names,
)
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.losses import Loss
from dragoman.wire.overlay import extras_of, fields_of
from dragoman.wire.reading import Reading
from dragoman.wire.services import is_number, objects, optional, positive, refuse, vector_of

_NAMES = snake_names("taskType", "outputDimensionality", "embedContentConfig")
_CONFIG = "embedContentConfig"
_OF_ONE = frozenset({"content", "title", "model"})
"""What each request of a batch has of its own; the rest has to be the same in all."""
_SETTINGS = frozenset({"taskType", "outputDimensionality"})
_SINGLE = "single"


# --- a request


def encode_embeddings(asked: ToEmbed) -> Encoded:
    """The body of `batchEmbedContents`: a request for each input."""
    losses = list(embedding_losses(asked, NAME, ("task", "titles")))
    shared: dict[str, Any] = {"model": f"models/{bare_model(asked.model)}"}
    if asked.task is not None:
        shared["taskType"] = asked.task
    if asked.dimensions is not None:
        shared["outputDimensionality"] = asked.dimensions
    shared |= {**fields_of(asked.extras, NAME), **asked.extra}
    requests = [
        {**shared, **title, "content": {"parts": parts}}
        for title, parts in zip(_titles(asked), _contents(asked, losses), strict=True)
    ]
    return Encoded({"requests": requests}, losses=tuple(losses))


def _titles(asked: ToEmbed) -> list[dict[str, str]]:
    titles = asked.titles or [None] * len(asked.inputs)
    return [{} if title is None else {"title": title} for title in titles]


def _contents(asked: ToEmbed, losses: list[Loss]) -> list[list[Any]]:
    """The parts of each input."""
    writing = Writing(TARGET)
    writing.place = "inputs[{}][{}]"
    found = [_parts(given, place, writing) for place, given in enumerate(asked.inputs)]
    losses += writing.losses
    return found


def _parts(given: EmbeddingInput, place: int, writing: Writing) -> list[Any]:
    if isinstance(given, str):
        return [{"text": given}]
    parts = encode_parts(parts_of(given), place, writing)
    if not parts:
        msg = "token ids, and what has no form here, can't be embedded by this model"
        raise InvalidInputError(msg)
    return parts


def decode_embedding_request(wire: Mapping[str, Any], path: str | None) -> ToEmbed:
    """What a client asks to embed, in either form."""
    if "requests" not in wire:
        return _decode_alike([_config_lifted(_named(wire))], path, _SINGLE)
    requests = wire["requests"]
    if not is_list(requests) or not requests or not all(map(is_object, requests)):
        refuse("a list of requests", "$.requests", NAME)
    if len(wire) > 1 and not wire.keys() <= {"requests", "model"}:
        refuse("nothing but requests", "$", NAME)
    return _decode_alike([_config_lifted(_named(request)) for request in requests], path, None)


def _named(wire: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as the API itself spells them."""
    return {_NAMES.get(key, key): value for key, value in wire.items()}


def _config_lifted(wire: dict[str, Any]) -> dict[str, Any]:
    """Vertex AI has the settings in an object of their own."""
    config = wire.get(_CONFIG)
    if not is_object(config):
        return wire
    named = _named(config)
    lifted = {key: named.pop(key) for key in ("title", *_SETTINGS) if key in named}
    rest = {key: value for key, value in wire.items() if key != _CONFIG}
    return {**lifted, **rest, **({_CONFIG: named} if named else {})}


def _decode_alike(
    requests: Sequence[dict[str, Any]], path: str | None, form: str | None
) -> ToEmbed:
    """Requests that differ in their contents and titles only."""
    first = requests[0]
    shared = {key: value for key, value in first.items() if key not in _OF_ONE}
    for other in requests[1:]:
        if {key: value for key, value in other.items() if key not in _OF_ONE} != shared:
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
    """The one model, which the path or the requests name."""
    named = {optional(request, "model", str, NAME) for request in requests}
    models = {bare_model(name) for name in named if name}
    models |= {model} if (model := path_model(path)) else set()
    if len(models) == 1:
        return models.pop()
    msg = "the path and the requests must name one model" if models else "no model is named"
    raise InvalidRequest(msg, status=400)


def _decode_input(content: Any) -> EmbeddingInput:
    """A content: a text, where it is nothing else."""
    parts = content.get("parts") if is_object(content) else None
    if is_object(parts):
        parts = [parts]
    if not is_list(parts) or not parts or not content.keys() <= {"parts", "role"}:
        return refuse("a content with parts", "$.content", NAME)
    found: tuple[AnyPart, ...] = decode_parts(parts, Reading(ORIGIN, CallIds()))
    only = found[0] if len(found) == 1 else None
    return only.text if type(only) is Text and only == Text(only.text) else found


# --- its answer


def decode_embeddings(wire: Any) -> Embedded:
    """The embeddings in a body, in the order of the requests."""
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


def encode_embedding_response(embedded: Embedded, asked: ToEmbed) -> Encoded:
    """The embeddings for a client, in the form of its request."""
    rows = [{"values": list(vector)} for vector in checked_vectors(embedded, asked)]
    body: dict[str, Any] = {"embeddings": rows}
    if asked.answer_form == _SINGLE:
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
