"""Responses for clients besides conversations: embeddings, model lists, token counts.

A `ServiceFront` decodes a client's request into canonical values, and encodes canonical values as
the response the client expects, so any provider can serve any front. Clients that send a prompt
instead of a conversation use a `PromptFront`.
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
    """Handles a client's requests besides conversations, in the client's dialect.

    >>> front = ServiceFront("anthropic", path="/v1/models?limit=1")
    >>> front.models([ModelInfo("one"), ModelInfo("two")]).body["has_more"]
    True

    Services that a dialect doesn't have raise `InvalidRequest` with status 404.
    """

    @property
    def _services(self) -> Services:
        return self.dialect.services() or Services()

    def decode_embeddings(self, body: Body) -> ToEmbed:
        """Decode a client's request for embeddings."""
        format_ = _needed(self._services.embeddings, "embeddings")
        decode = _needed(format_.decode_request, "embeddings")
        return self._read(lambda: decode(self._opened(body), self.path))

    def embeddings(self, embedded: Embedded, asked: ToEmbed) -> Encoded:
        """Encode embeddings in the requested format."""
        format_ = _needed(self._services.embeddings, "embeddings")
        return self._stamped(_needed(format_.encode_response, "embeddings")(embedded, asked))

    def models(
        self, models: Sequence[ModelInfo], query: Mapping[str, str] | None = None
    ) -> Encoded:
        """Encode the requested page of these models; `query` defaults to the path's query."""
        format_ = _needed(self._services.models, "list of models")
        encode = _needed(format_.encode, "list of models")
        found = dict(parse_qsl(self._query)) if query is None else query
        return self._stamped(encode(models, found))

    def decode_model_name(self, body: Body | None = None) -> str:
        """The requested model, from the path; Ollama's clients send it in the body."""
        format_ = _needed(self._services.models, "list of models")
        if format_.decode_name is not None:
            decode = format_.decode_name
            return self._read(lambda: decode(self._opened(body or {})))
        place = (self.path or "").partition("?")[0]
        name = unquote(place.rpartition("/models/")[2])
        if not name:
            msg = "the request doesn't name a model"
            raise InvalidRequest(msg, status=400)
        return name

    def model(self, model: ModelInfo) -> Encoded:
        """Encode a single model."""
        format_ = _needed(self._services.models, "list of models")
        return self._stamped(_needed(format_.encode_model, "list of models")(model))

    def decode_count(self, body: Body) -> Request:
        """Decode the request whose prompt tokens are to be counted."""
        format_ = _needed(self._services.counts, "token counts")
        decode = _needed(format_.decode_request, "token counts")
        counted = self._read(lambda: decode(self._opened(body), self.path))
        return self.dialect.decode_request(counted.body, path=counted.path)

    def count(self, tokens: int | TokenCount) -> Encoded:
        """Encode the number of tokens."""
        format_ = _needed(self._services.counts, "token counts")
        encode = _needed(format_.encode_response, "token counts")
        return self._stamped(Encoded(encode(int(tokens))))

    def running(self, models: Sequence[ModelInfo]) -> Encoded:
        """Encode the list of loaded models (Ollama)."""
        return self._stamped(_needed(self._services.encode_running, "loaded models")(models))

    def version(self, version: str) -> Encoded:
        """Encode the server's version (Ollama)."""
        return self._stamped(Encoded(_needed(self._services.encode_version, "version")(version)))

    # ---

    @property
    def _query(self) -> str:
        return (self.path or "").partition("?")[2]

    def _opened(self, body: Body) -> Mapping[str, Any]:
        return parsed(body, self.dialect.name)

    def _read(self, decode: Callable[[], T]) -> T:
        """Run a decoder; values that the model can't hold are reported as the client's fault."""
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
