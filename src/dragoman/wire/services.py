"""What a dialect has besides conversations: embeddings, lists of models, counts and uploads.

A dialect that has any returns them from `Dialect.services`. As all wire code it does no I/O: it
writes bodies, and reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, TypeGuard

from dragoman.errors import WireError
from dragoman.model.catalogue import ModelInfo
from dragoman.model.frozen import EMPTY
from dragoman.model.usage import Usage
from dragoman.wire.dialect import dialect as registered
from dragoman.wire.json_values import is_list, is_object


class ToEmbed(NamedTuple):
    """What is asked of an embedding model."""

    model: str
    texts: Sequence[str]
    dimensions: int | None = None
    extra: Mapping[str, Any] = EMPTY
    """Further fields, as the provider names them."""


def encode_embeddings(asked: ToEmbed) -> dict[str, Any]:
    """The body of a request for embeddings, as OpenAI and Ollama have it."""
    body: dict[str, Any] = {"model": asked.model, "input": list(asked.texts)}
    if asked.dimensions is not None:
        body["dimensions"] = asked.dimensions
    return {**body, **asked.extra}


class Embedded(NamedTuple):
    """What it answers."""

    vectors: Sequence[Sequence[float]]
    """In the order of the texts."""
    usage: Usage | None = None
    model: str | None = None


class EmbeddingFormat(NamedTuple):
    """How texts are embedded."""

    encode: Callable[[ToEmbed], dict[str, Any]]
    decode: Callable[[Any], Embedded]
    most: int | None = None
    """How many texts one request may hold, at the vendor's own."""


class ModelPage(NamedTuple):
    """A page of a list of models."""

    models: Sequence[ModelInfo]
    following: Mapping[str, str] | None = None
    """The query that asks for the page after it; None: it is the last."""


class ListFormat(NamedTuple):
    """How models are listed."""

    decode: Callable[[Any], ModelPage]
    query: Mapping[str, str] = EMPTY
    """What to ask with for the first page."""


class CountFormat(NamedTuple):
    """How the tokens of a prompt are counted."""

    encode: Callable[[Mapping[str, Any], str | None], dict[str, Any]]
    """Given the body of a request for an answer; and the model, where that is to be named."""
    decode: Callable[[Any], int]


class ToUpload(NamedTuple):
    """A file on its way to a provider."""

    content: bytes
    mime: str
    name: str


class Piece(NamedTuple):
    """One of the requests that an upload takes."""

    headers: Mapping[str, str]
    body: bytes


class Uploaded(NamedTuple):
    """A file that a provider has."""

    file_id: str
    is_ready: bool = True
    """Whether it can be used already; else ask again."""


class UploadFormat(NamedTuple):
    """How a file is uploaded: in one request, or in two where the first is told an address."""

    start: Callable[[ToUpload], Piece]
    decode: Callable[[Any], Uploaded]
    finish: Callable[[ToUpload], Piece] | None = None
    address: str = ""
    """The header of the first answer that says where the second request goes."""
    place: Callable[[str, str], str] | None = None
    """The address of a file, given where it was uploaded to, and its id."""


class Services(NamedTuple):
    """What a dialect has; None: it does not have it."""

    embeddings: EmbeddingFormat | None = None
    models: ListFormat | None = None
    counts: CountFormat | None = None
    uploads: UploadFormat | None = None


def services(dialect: str) -> Services:
    """What a dialect has besides conversations.

    >>> services("anthropic").embeddings is None
    True
    """
    return registered(dialect).services() or Services()


# --- for reading


def is_number(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number that is not negative."""
    return type(value) is int and value >= 0


def objects(value: Any, key: str | None, dialect: str) -> list[dict[str, Any]]:
    """The objects of a list: the value itself, or a field of it. Others there are left out."""
    found = value if key is None else _at(value, key)
    if is_list(found):
        return [item for item in found if is_object(item)]
    return _refuse("a list", "$" if key is None else f"$.{key}", dialect)


def text_at(value: Any, key: str, dialect: str) -> str:
    """A text that has to be there."""
    found = _at(value, key)
    if isinstance(found, str) and found:
        return found
    return _refuse("a text", f"$.{key}", dialect)


def number_at(value: Any, key: str, dialect: str) -> int:
    """A whole number that has to be there."""
    found = _at(value, key)
    if is_number(found):
        return found
    return _refuse("a whole number", f"$.{key}", dialect)


def vector_of(value: Any, path: str, dialect: str) -> tuple[float, ...]:
    """The numbers of an embedding."""
    if isinstance(value, list) and {*map(type, value)} <= {float, int}:
        return tuple(value)
    return _refuse("numbers", path, dialect)


def _at(value: Any, key: str) -> Any:
    return value.get(key) if is_object(value) else None


def _refuse(what: str, path: str, dialect: str) -> NoReturn:
    msg = f"expected {what} at {path}"
    raise WireError(msg, dialect=dialect, path=path)
