"""Answers for the clients of a dialect, besides chats: embeddings, lists of models, token counts.

A `ServiceFront` reads what such a client asks into canonical values, and writes canonical values as
what it expects; so any front is answered by any provider. Clients that send a prompt instead of a
chat have a `PromptFront`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote

from dragoman.errors import InvalidInputError, InvalidRequest, WireError
from dragoman.model.catalogue import ModelInfo, TokenCount
from dragoman.model.requests import Request
from dragoman.wire.dialect import Body
from dragoman.wire.embeddings import Embedded, ToEmbed
from dragoman.wire.encoded import Encoded
from dragoman.wire.front import Front
from dragoman.wire.json_values import parsed
from dragoman.wire.services import Services

T = TypeVar("T")


class ServiceFront(Front):
    """Answers what a client asks besides chats, in the client's dialect.

    >>> front = ServiceFront("anthropic", path="/v1/models?limit=1")
    >>> front.models([ModelInfo("one"), ModelInfo("two")]).body["has_more"]
    True

    What a dialect doesn't have raises `InvalidRequest`, with the status 404.
    """

    @property
    def _services(self) -> Services:
        return self.dialect.services() or Services()

    def decode_embeddings(self, body: Body) -> ToEmbed:
        """What the client asks to embed."""
        format_ = _needed(self._services.embeddings, "embeddings")
        decode = _needed(format_.decode_request, "embeddings")
        return self._read(lambda: decode(self._opened(body), self.path))

    def embeddings(self, embedded: Embedded, asked: ToEmbed) -> Encoded:
        """The embeddings, in the form that was asked for."""
        format_ = _needed(self._services.embeddings, "embeddings")
        return self._stamped(_needed(format_.encode_response, "embeddings")(embedded, asked))

    def models(
        self, models: Sequence[ModelInfo], query: Mapping[str, str] | None = None
    ) -> Encoded:
        """The page of these models that the client asks for: the path's query, unless given."""
        format_ = _needed(self._services.models, "list of models")
        encode = _needed(format_.encode, "list of models")
        found = dict(parse_qsl(self._query)) if query is None else query
        return self._stamped(encode(models, found))

    def decode_model_name(self, body: Body | None = None) -> str:
        """The model that the client asks about, in the path; Ollama's clients say it in a body."""
        format_ = _needed(self._services.models, "list of models")
        if format_.decode_name is not None:
            decode = format_.decode_name
            return self._read(lambda: decode(self._opened(body or {})))
        place = (self.path or "").partition("?")[0]
        name = unquote(place.rpartition("/models/")[2])
        if not name:
            msg = "no model is named"
            raise InvalidRequest(msg, status=400)
        return name

    def model(self, model: ModelInfo) -> Encoded:
        """One model alone."""
        format_ = _needed(self._services.models, "list of models")
        return self._stamped(_needed(format_.encode_model, "list of models")(model))

    def decode_count(self, body: Body) -> Request:
        """The request whose prompt the client wants to be counted."""
        format_ = _needed(self._services.counts, "token counts")
        decode = _needed(format_.decode_request, "token counts")
        counted = self._read(lambda: decode(self._opened(body), self.path))
        return self.dialect.decode_request(counted.body, path=counted.path)

    def count(self, tokens: int | TokenCount) -> Encoded:
        """The number of tokens."""
        format_ = _needed(self._services.counts, "token counts")
        encode = _needed(format_.encode_response, "token counts")
        return self._stamped(Encoded(encode(int(tokens))))

    def running(self, models: Sequence[ModelInfo]) -> Encoded:
        """The models that are loaded (Ollama)."""
        return self._stamped(_needed(self._services.encode_running, "loaded models")(models))

    def version(self, version: str) -> Encoded:
        """The version of the server (Ollama)."""
        return self._stamped(Encoded(_needed(self._services.encode_version, "version")(version)))

    # ---

    @property
    def _query(self) -> str:
        return (self.path or "").partition("?")[2]

    def _opened(self, body: Body) -> Mapping[str, Any]:
        return parsed(body, self.dialect.name)

    def _read(self, decode: Callable[[], T]) -> T:
        """What a decoder reads; what no value can hold is the client's fault."""
        try:
            return decode()
        except InvalidInputError as error:
            problem = str(error)
        except RecursionError:
            problem = "the JSON nests too deeply"
        raise WireError(problem, dialect=self.dialect.name, path="$")

    def _stamped(self, encoded: Encoded) -> Encoded:
        encoded.headers = {"content-type": "application/json", **self.headers}
        return encoded


def _needed(found: T | None, what: str) -> T:
    if found is None:
        msg = f"this API has no {what}"
        raise InvalidRequest(msg, status=404)
    return found
