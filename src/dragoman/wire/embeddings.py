"""Embedding requests and responses, and how dialects encode and decode them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self, TypeGuard

from dragoman.errors import InvalidInputError, ServerError, WireError
from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Text
from dragoman.model.usage import Usage
from dragoman.wire.encoded import Encoded
from dragoman.wire.foreign_extras import foreign_losses
from dragoman.wire.json_values import is_integer, is_list
from dragoman.wire.losses import Loss

Tokens = tuple[int, ...]
EmbeddingInput = str | Tokens | tuple[AnyPart, ...]
"""One input, which gets one vector: a text, token ids, or parts (media, or several texts)."""


class ToEmbed(NamedTuple):
    """An embedding request."""

    model: str
    inputs: Sequence[EmbeddingInput]
    dimensions: int | None = None
    extra: Mapping[str, Any] = EMPTY
    """Additional fields, under the provider's own names."""
    task: str | None = None
    """What the vectors are for, in Google's terms: RETRIEVAL_QUERY, CLUSTERING, …"""
    titles: Sequence[str | None] = ()
    """The titles of the inputs, one for each; or empty."""
    user: str | None = None
    """A stable identifier of the end user."""
    extras: Mapping[str, Any] = EMPTY
    """By dialect: fields sent by a client that only its dialect has."""
    answer_form: str | None = None
    """The response format the client requested, in its dialect's terms: base64, single, …"""

    def portion(self, start: int, stop: int | None = None) -> Self:
        """The same request for a slice of the inputs."""
        chosen = slice(start, stop)
        return self._replace(inputs=self.inputs[chosen], titles=self.titles[chosen])

    def __repr__(self) -> str:
        return f"ToEmbed({len(self.inputs)} inputs)"


class Embedded(NamedTuple):
    """An embedding response."""

    vectors: Sequence[Sequence[float]]
    """In the order of the inputs."""
    usage: Usage | None = None
    model: str | None = None
    losses: tuple[Loss, ...] = ()
    """What the provider's dialect could not express of the request."""

    def __repr__(self) -> str:
        return f"Embedded({len(self.vectors)} vectors)"


class EmbeddingFormat(NamedTuple):
    """How a dialect encodes and decodes embeddings, for clients and for servers."""

    encode: Callable[[ToEmbed], Encoded]
    """Encode the request; inputs that the dialect can't embed raise `InvalidInputError`."""
    decode: Callable[[Any], Embedded]
    """Decode the provider's response."""
    most: int | None = None
    """Maximum number of inputs per request at the vendor's own deployment."""
    decode_request: Callable[[Mapping[str, Any], str | None], ToEmbed] | None = None
    """Decode a client's request, given the body and the path."""
    encode_response: Callable[[Embedded, ToEmbed], Encoded] | None = None
    """Encode the response for a client."""


# --- encoding a request: what a dialect can't express


def embedding_losses(asked: ToEmbed, home: str, fields: Iterable[str]) -> Iterator[Loss]:
    """Report the settings not among `fields`, and other dialects' extras, as losses."""
    if asked.task is not None and "task" not in fields:
        yield Loss("task", "embedding tasks are not supported")
    if any(title is not None for title in asked.titles) and "titles" not in fields:
        yield Loss("titles", "input titles are not supported")
    if asked.user is not None and "user" not in fields:
        yield Loss("user", "user ids are not supported for embeddings")
    yield from foreign_losses(asked.extras, home, "extras")


def is_tokens(given: EmbeddingInput) -> TypeGuard[Tokens]:
    """Whether an input is token ids."""
    return isinstance(given, tuple) and bool(given) and type(given[0]) is int


def parts_of(given: EmbeddingInput) -> tuple[AnyPart, ...]:
    """The parts of an input; none where it is token ids."""
    if isinstance(given, str):
        return (Text(given),)
    return tuple([part for part in given if not isinstance(part, int)])


def plain_texts(asked: ToEmbed, losses: list[Loss]) -> list[str]:
    """The inputs as texts, for a dialect that embeds only texts."""
    return [
        given if isinstance(given, str) else _plain_text(given, place, losses)
        for place, given in enumerate(asked.inputs)
    ]


def _plain_text(given: EmbeddingInput, place: int, losses: list[Loss]) -> str:
    if is_tokens(given):
        msg = "this model can't embed token ids; send texts instead"
        raise InvalidInputError(msg)
    texts = [part.text for part in given if isinstance(part, Text)]
    if not texts or len(texts) != len(given):
        msg = "this model can embed only texts"
        raise InvalidInputError(msg)
    losses.append(Loss(f"inputs[{place}]", "its parts are joined into one text"))
    return "\n".join(texts)


# --- decoding a request


def decode_inputs(given: Any, dialect: str, path: str, *, takes_tokens: bool) -> list[Any]:
    """The inputs in a field: a text, a list of texts or, if supported, token ids."""
    if isinstance(given, str):
        return [given]
    kinds = {*map(type, given)} if is_list(given) else set()
    if kinds == {str}:
        return list(given)
    if takes_tokens and kinds == {int}:
        return [_tokens(given, dialect, path)]
    if takes_tokens and kinds == {list}:
        return [_tokens(each, dialect, path) for each in given]
    msg = f"expected a text or a list of texts at {path}"
    raise WireError(msg, dialect=dialect, path=path)


def _tokens(given: list[Any], dialect: str, path: str) -> Tokens:
    if given and {*map(type, given)} == {int} and min(given) >= 0 and is_integer(max(given)):
        return tuple(given)
    msg = f"expected token ids at {path}"
    raise WireError(msg, dialect=dialect, path=path)


# --- encoding a response


def checked_vectors(embedded: Embedded, asked: ToEmbed) -> Sequence[Sequence[float]]:
    """The vectors; raises `ServerError` if their number differs from that of the inputs."""
    if len(embedded.vectors) != len(asked.inputs):
        asked_for, found = len(asked.inputs), len(embedded.vectors)
        msg = f"the model returned {found} embeddings for {asked_for} inputs"
        raise ServerError(msg)
    return embedded.vectors
