"""Embeddings between dialects: what is asked, what is answered, and how a dialect writes both."""

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
"""What gets one vector: a text, token ids, or parts (media, or several texts)."""


class ToEmbed(NamedTuple):
    """What is asked of an embedding model."""

    model: str
    inputs: Sequence[EmbeddingInput]
    dimensions: int | None = None
    extra: Mapping[str, Any] = EMPTY
    """Further fields, as the provider that is asked names them."""
    task: str | None = None
    """What the vectors are for, as Google names it: RETRIEVAL_QUERY, CLUSTERING, …"""
    titles: Sequence[str | None] = ()
    """The titles of the inputs, one for each; or none at all."""
    user: str | None = None
    """Who asks: a stable name for the person behind the request."""
    extras: Mapping[str, Any] = EMPTY
    """By dialect: fields that a client sent and that only its dialect knows."""
    answer_form: str | None = None
    """The form in which the client wants the answer, in its dialect's word: base64, single, …"""

    def portion(self, start: int, stop: int | None = None) -> Self:
        """The same of some inputs."""
        chosen = slice(start, stop)
        return self._replace(inputs=self.inputs[chosen], titles=self.titles[chosen])

    def __repr__(self) -> str:
        return f"ToEmbed({len(self.inputs)} inputs)"


class Embedded(NamedTuple):
    """What it answers."""

    vectors: Sequence[Sequence[float]]
    """In the order of the inputs."""
    usage: Usage | None = None
    model: str | None = None
    losses: tuple[Loss, ...] = ()
    """What of the request the provider could not be told."""

    def __repr__(self) -> str:
        return f"Embedded({len(self.vectors)} vectors)"


class EmbeddingFormat(NamedTuple):
    """How inputs are embedded: first a client's side, then a server's."""

    encode: Callable[[ToEmbed], Encoded]
    """The request to send; inputs that the dialect can't embed raise `InvalidInputError`."""
    decode: Callable[[Any], Embedded]
    """What the provider answered."""
    most: int | None = None
    """How many inputs one request may hold, at the vendor's own."""
    decode_request: Callable[[Mapping[str, Any], str | None], ToEmbed] | None = None
    """What a client asks, given the body and the path."""
    encode_response: Callable[[Embedded, ToEmbed], Encoded] | None = None
    """The body to answer a client with."""


# --- writing a request: what a dialect can't express


def embedding_losses(asked: ToEmbed, home: str, fields: Iterable[str]) -> Iterator[Loss]:
    """What is lost of a request: the settings that are not among `fields`, and others' extras."""
    if asked.task is not None and "task" not in fields:
        yield Loss("task", "there is no task here")
    if any(title is not None for title in asked.titles) and "titles" not in fields:
        yield Loss("titles", "there are no titles here")
    if asked.user is not None and "user" not in fields:
        yield Loss("user", "the user is not named here")
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
    """The inputs, for a dialect that embeds nothing but texts."""
    return [
        given if isinstance(given, str) else _plain_text(given, place, losses)
        for place, given in enumerate(asked.inputs)
    ]


def _plain_text(given: EmbeddingInput, place: int, losses: list[Loss]) -> str:
    if is_tokens(given):
        msg = "token ids can't be embedded by this model: send texts"
        raise InvalidInputError(msg)
    texts = [part.text for part in given if isinstance(part, Text)]
    if not texts or len(texts) != len(given):
        msg = "only texts can be embedded by this model"
        raise InvalidInputError(msg)
    losses.append(Loss(f"inputs[{place}]", "its parts are joined to one text"))
    return "\n".join(texts)


# --- reading a request


def decode_inputs(given: Any, dialect: str, path: str, *, takes_tokens: bool) -> list[Any]:
    """The inputs in a field: a text, texts, and where the dialect has them, token ids."""
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


# --- writing an answer


def checked_vectors(embedded: Embedded, asked: ToEmbed) -> Sequence[Sequence[float]]:
    """The vectors; too few or too many are the model's fault, not the client's."""
    if len(embedded.vectors) != len(asked.inputs):
        asked_for, found = len(asked.inputs), len(embedded.vectors)
        msg = f"asked for {asked_for} embeddings, the model gave {found}"
        raise ServerError(msg)
    return embedded.vectors
