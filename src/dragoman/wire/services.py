"""What a dialect supports besides conversations: embeddings, model lists, token counts, uploads.

A dialect that has any returns them from `Dialect.services`. Like all wire code this performs no
I/O: it only encodes and decodes bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, TypeGuard, TypeVar

from dragoman.errors import WireError
from dragoman.model.catalogue import ModelInfo
from dragoman.model.frozen import EMPTY
from dragoman.wire.dialect import dialect as registered
from dragoman.wire.embeddings import EmbeddingFormat
from dragoman.wire.encoded import Encoded
from dragoman.wire.json_values import is_integer, is_list, is_object

T = TypeVar("T")
_KINDS: dict[type, str] = {str: "a text", int: "a whole number", bool: "true or false"}


class ModelPage(NamedTuple):
    """One page of a model list."""

    models: Sequence[ModelInfo]
    following: Mapping[str, str] | None = None
    """The query for the next page; None on the last page."""


class ListFormat(NamedTuple):
    """How a dialect encodes and decodes models and model lists, for clients and for servers."""

    decode: Callable[[Any], ModelPage]
    query: Mapping[str, str] = EMPTY
    """The query for the first page."""
    decode_model: Callable[[Any], ModelInfo] | None = None
    """Decode a single model."""
    encode: Callable[[Sequence[ModelInfo], Mapping[str, str]], Encoded] | None = None
    """Encode the page of all models that the client's query requests."""
    encode_model: Callable[[ModelInfo], Encoded] | None = None
    """Encode a single model."""
    decode_name: Callable[[Mapping[str, Any]], str] | None = None
    """The requested model, if the body names it; None if the path does."""


class CountFormat(NamedTuple):
    """How a dialect encodes and decodes token counts, for clients and for servers."""

    encode: Callable[[Mapping[str, Any], str | None], dict[str, Any]]
    """Given the body of a conversation request, and the model if it must be named."""
    decode: Callable[[Any], int]
    decode_request: Callable[[Mapping[str, Any], str | None], Counted] | None = None
    """Decode the conversation request whose prompt is to be counted, given body and path."""
    encode_response: Callable[[int], dict[str, Any]] | None = None


class Counted(NamedTuple):
    """A conversation request whose prompt is to be counted, in its dialect."""

    body: Mapping[str, Any]
    path: str | None = None


class ToUpload(NamedTuple):
    """A file to upload."""

    content: bytes
    mime: str
    name: str


class Piece(NamedTuple):
    """One of the requests of an upload."""

    headers: Mapping[str, str]
    body: bytes


class Uploaded(NamedTuple):
    """A file that was uploaded."""

    file_id: str
    is_ready: bool = True
    """Whether it can be used already; otherwise poll again."""


class UploadFormat(NamedTuple):
    """How a file is uploaded: in one request, or in two if the first returns an upload URL."""

    start: Callable[[ToUpload], Piece]
    decode: Callable[[Any], Uploaded]
    finish: Callable[[ToUpload], Piece] | None = None
    address: str = ""
    """The header of the first response that has the URL for the second request."""
    place: Callable[[str, str], str] | None = None
    """The URL of a file, given where it was uploaded to, and its id."""


class Services(NamedTuple):
    """The services of a dialect; None where it lacks one."""

    embeddings: EmbeddingFormat | None = None
    models: ListFormat | None = None
    counts: CountFormat | None = None
    uploads: UploadFormat | None = None
    prompt_front: str | None = None
    """The module that has `PROMPT_FRONT`, for clients that send a prompt, not a conversation."""
    encode_running: Callable[[Sequence[ModelInfo]], Encoded] | None = None
    """Encode the list of loaded models."""
    encode_version: Callable[[str], dict[str, Any]] | None = None
    """Encode the server's version."""


def services(dialect: str) -> Services:
    """The services of a dialect besides conversations.

    >>> services("anthropic").embeddings is None
    True
    """
    return registered(dialect).services() or Services()


# --- decoding


def is_number(value: object) -> TypeGuard[int]:
    """Whether a value is a non-negative integer."""
    return type(value) is int and value >= 0


def objects(value: Any, key: str | None, dialect: str) -> list[dict[str, Any]]:
    """The objects in a list: the value itself, or one of its fields. Other items are ignored."""
    found = value if key is None else _at(value, key)
    if is_list(found):
        return [item for item in found if is_object(item)]
    return refuse("a list", "$" if key is None else f"$.{key}", dialect)


def text_at(value: Any, key: str, dialect: str) -> str:
    """A required, non-empty string."""
    found = _at(value, key)
    if isinstance(found, str) and found:
        return found
    return refuse("a text", f"$.{key}", dialect)


def number_at(value: Any, key: str, dialect: str) -> int:
    """A required non-negative integer."""
    found = _at(value, key)
    if is_number(found):
        return found
    return refuse("a whole number", f"$.{key}", dialect)


def vector_of(value: Any, path: str, dialect: str) -> tuple[float, ...]:
    """The numbers of an embedding vector."""
    if isinstance(value, list) and {*map(type, value)} <= {float, int}:
        return tuple(value)
    return refuse("numbers", path, dialect)


def optional(value: Mapping[str, Any], key: str, kind: type[T], dialect: str) -> T | None:
    """An optional field of exactly that type; absent or null gives None."""
    found = value.get(key)
    if found is None or type(found) is kind:
        return found
    return refuse(_KINDS.get(kind, kind.__name__), f"$.{key}", dialect)


def positive(value: Mapping[str, Any], key: str, dialect: str) -> int | None:
    """An optional integer above zero; absent or null gives None."""
    found = optional(value, key, int, dialect)
    if found is None or (found > 0 and is_integer(found)):
        return found
    return refuse("a whole number above zero", f"$.{key}", dialect)


def _at(value: Any, key: str) -> Any:
    return value.get(key) if is_object(value) else None


def refuse(what: str, path: str, dialect: str) -> NoReturn:
    """Raise `WireError` for a field."""
    msg = f"expected {what} at {path}"
    raise WireError(msg, dialect=dialect, path=path)
