"""Embeddings: for clients of OpenAI, Gemini and Ollama, from any provider that has them."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from dragoman.errors import DragomanError, InvalidRequest
from dragoman.gateway.chat import answer
from dragoman.gateway.client_request import accepted_fields
from dragoman.gateway.delivered import MAX_BYTES_PER_TOKEN, SLACK, largest, tokens_in
from dragoman.gateway.http import Call
from dragoman.gateway.inbound import InboundRequest
from dragoman.gateway.large_bodies import translated_aside
from dragoman.gateway.limits import unknown_maximum
from dragoman.gateway.services.paths import service_front
from dragoman.gateway.translation import NO_SETTINGS, Settings
from dragoman.gateway.upstream_task import UpstreamTask
from dragoman.gateway.upstreams import Upstream
from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Text
from dragoman.model.usage import Usage
from dragoman.providers.endpoints import USUAL
from dragoman.transport.protocol import Timeouts
from dragoman.wire.embeddings import Embedded, EmbeddingInput, ToEmbed, parts_of
from dragoman.wire.lane.plain import Summary
from dragoman.wire.service_front import ServiceFront

ESTIMATED = {"x-dragoman-estimated": "true"}
"""The header of a response whose token count is estimated."""
_BYTES_PER_TOKEN = 3.5
_PER_MEDIUM = 1_000
_MAX_INPUTS = 10_000


async def embed(inbound: InboundRequest) -> None:
    """Handles a request for embeddings."""
    front = service_front(inbound)
    body = await inbound.body()
    body, _, losses = await translated_aside(body, accepted_fields, front.dialect, body)
    asked = await translated_aside(body, front.decode_embeddings, body)
    task = Embedding(inbound.call, front, asked, len(body))
    task.ignored = losses
    await answer(inbound, task)


class Embedding(UpstreamTask):
    """A request for embeddings."""

    def __init__(self, sink: Call, front: ServiceFront, asked: ToEmbed, size: int) -> None:
        super().__init__(asked.model, sink)
        self._front = front
        self._asked = asked
        self._size = size
        if len(asked.inputs) > _MAX_INPUTS:
            msg = f"a request can have at most {_MAX_INPUTS:,} inputs"
            raise InvalidRequest(msg, status=400)

    def estimated_usage(
        self,
        settings: Settings = NO_SETTINGS,  # noqa: ARG002 - no limits
        maximum: Callable[[], int] = unknown_maximum,  # noqa: ARG002
    ) -> Usage:
        """Estimates the usage from the body's size: there are no output tokens."""
        by_size = Usage(input=tokens_in(self._size) + 1)
        return largest((by_size, estimated_usage(self._asked)))  # token ids are shorter

    def supports(self, upstream: Upstream, model: str | None) -> bool:
        """Whether the dialect and the provider support embeddings."""
        if not self._asked.inputs:
            return True  # Ollama's clients send no input to load a model
        if not upstream.is_wire or upstream.place.provider is None:
            return False
        spoken = upstream.dialect(model)
        services = spoken.services()
        if services is None or services.embeddings is None:
            return False
        paths = upstream.place.provider.endpoints.get(spoken.name) or USUAL.get(spoken.name)
        return paths is not None and paths.embed is not None

    def unsupported(self) -> DragomanError:
        """Returns the error for a model whose API has no embeddings."""
        msg = (
            "the provider of this model does not support embeddings; use a model of one that does,"
            " such as OpenAI, Google or Ollama"
        )
        return InvalidRequest(msg, status=400, code="unsupported", param="model")

    async def _attempt(
        self, upstream: Upstream, model: str | None, settings: Settings, timeouts: Timeouts | None
    ) -> None:
        del settings, timeouts  # the former don't apply to embeddings, the latter's total in `run`
        asked = self._asked
        if not asked.inputs:
            await self._send(Embedded((), None, asked.model), {})
            return
        meant = asked._replace(model=model or asked.model)
        speaking = upstream.dialect(model).name
        fields = asked.extras.get(speaking, EMPTY)
        if names := self.left_out(upstream, model, fields):
            kept = {name: value for name, value in fields.items() if name not in names}
            meant = meant._replace(extras={**asked.extras, speaking: kept})
        embedded = await upstream.client.embed_inputs(meant)
        self.losses += embedded.losses
        usage = embedded.usage or estimated_usage(asked)
        self.summary = Summary(embedded.model, usage)
        headers = ESTIMATED if embedded.usage is None else {}
        if embedded.usage is None or not _is_credible(embedded.usage, asked):
            self.partial = largest((usage, self.estimated_usage()))
            self.summary = Summary(embedded.model, self.partial)
        await self._send(embedded._replace(usage=usage), headers)

    async def _send(self, embedded: Embedded, headers: dict[str, str]) -> None:
        encoded = self._front.embeddings(embedded, self._asked)
        self.losses += encoded.losses
        sent = {**encoded.headers, **headers, **self.loss_headers()}
        await self.sink.respond(200, sent, encoded.to_bytes())


def _is_credible(usage: Usage, asked: ToEmbed) -> bool:
    """Whether a report may be true of these inputs: token ids, or texts of that size."""
    sizes = map(_least_tokens, asked.inputs)
    return usage.total_input + usage.separate_input >= max(sum(sizes), 1)


def _least_tokens(given: EmbeddingInput) -> int:
    parts = parts_of(given)
    if not parts:
        return len(given)
    size = sum(len(part.text) for part in parts if isinstance(part, Text))
    return max(0, size - SLACK) // MAX_BYTES_PER_TOKEN


def estimated_usage(asked: ToEmbed) -> Usage:
    """Estimates the input tokens, for providers that don't report them (Google's own API)."""
    return Usage(input=sum(map(_tokens, asked.inputs)))


def _tokens(given: EmbeddingInput) -> int:
    parts = parts_of(given)
    if not parts:
        return len(given)  # token ids
    texts = [part.text for part in parts if isinstance(part, Text)]
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    return ceil(size / _BYTES_PER_TOKEN) + _PER_MEDIUM * (len(parts) - len(texts))
