"""What a dialect has besides conversations: embeddings, lists of models, counts and uploads.

A dialect that has any returns them from `Dialect.services`. As all wire code it does no I/O: it
writes bodies, and reads them.
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
    """A page of a list of models."""

    models: Sequence[ModelInfo]
    following: Mapping[str, str] | None = None
    """The query that asks for the page after it; None: it is the last."""


class ListFormat(NamedTuple):
    """How models are listed, and one of them told: first a client's side, then a server's."""

    decode: Callable[[Any], ModelPage]
    query: Mapping[str, str] = EMPTY
    """What to ask with for the first page."""
    decode_model: Callable[[Any], ModelInfo] | None = None
    """One model alone."""
    encode: Callable[[Sequence[ModelInfo], Mapping[str, str]], Encoded] | None = None
    """The page of all models that the client's query asks for."""
    encode_model: Callable[[ModelInfo], Encoded] | None = None
    """One model alone."""
    decode_name: Callable[[Mapping[str, Any]], str] | None = None
    """The model that a client asks about, where the body says it; None: the path does."""


class CountFormat(NamedTuple):
    """How the tokens of a prompt are counted: first a client's side, then a server's."""

    encode: Callable[[Mapping[str, Any], str | None], dict[str, Any]]
    """Given the body of a request for an answer; and the model, where that is to be named."""
    decode: Callable[[Any], int]
    decode_request: Callable[[Mapping[str, Any], str | None], Counted] | None = None
    """The request for an answer whose prompt is to be counted, given the body and the path."""
    encode_response: Callable[[int], dict[str, Any]] | None = None


class Counted(NamedTuple):
    """A request for an answer whose prompt is to be counted, as its dialect writes it."""

    body: Mapping[str, Any]
    path: str | None = None


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
    prompt_front: str | None = None
    """The module that has `PROMPT_FRONT`, which answers clients that send a prompt, not a chat."""
    encode_running: Callable[[Sequence[ModelInfo]], Encoded] | None = None
    """The answer to a client that asks which models are loaded."""
    encode_version: Callable[[str], dict[str, Any]] | None = None
    """The answer to a client that asks for the server's version."""


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
    return refuse("a list", "$" if key is None else f"$.{key}", dialect)


def text_at(value: Any, key: str, dialect: str) -> str:
    """A text that has to be there."""
    found = _at(value, key)
    if isinstance(found, str) and found:
        return found
    return refuse("a text", f"$.{key}", dialect)


def number_at(value: Any, key: str, dialect: str) -> int:
    """A whole number that has to be there."""
    found = _at(value, key)
    if is_number(found):
        return found
    return refuse("a whole number", f"$.{key}", dialect)


def vector_of(value: Any, path: str, dialect: str) -> tuple[float, ...]:
    """The numbers of an embedding."""
    if isinstance(value, list) and {*map(type, value)} <= {float, int}:
        return tuple(value)
    return refuse("numbers", path, dialect)


def optional(value: Mapping[str, Any], key: str, kind: type[T], dialect: str) -> T | None:
    """A field that may be absent or null, and else has to be of that type; true is no number."""
    found = value.get(key)
    if found is None or type(found) is kind:
        return found
    return refuse(_KINDS.get(kind, kind.__name__), f"$.{key}", dialect)


def positive(value: Mapping[str, Any], key: str, dialect: str) -> int | None:
    """A number above zero that may be absent or null."""
    found = optional(value, key, int, dialect)
    if found is None or (found > 0 and is_integer(found)):
        return found
    return refuse("a whole number above zero", f"$.{key}", dialect)


def _at(value: Any, key: str) -> Any:
    return value.get(key) if is_object(value) else None


def refuse(what: str, path: str, dialect: str) -> NoReturn:
    """Blame the peer for a field."""
    msg = f"expected {what} at {path}"
    raise WireError(msg, dialect=dialect, path=path)
