"""Spans for model calls, agent runs, tool runs and history access.

Names and attributes follow OpenTelemetry's conventions for generative AI. Without tracing
(`switch`), none of this is created. Tracing never breaks the traced code: exceptions of a custom
processor are suppressed, and attributes that can't be serialised are left out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from decimal import Decimal
from functools import lru_cache, wraps
from time import perf_counter
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar
from urllib.parse import urlsplit

from dragoman.errors import ProviderError
from dragoman.model.requests import UNSAID, Request
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCall, ToolDefinition, ToolResult
from dragoman.model.usage import Usage
from dragoman.tracing.messages import (
    request_content,
    response_content,
    result_content,
)
from dragoman.tracing.switch import captures_content, is_traced, meter, tracer

PROVIDERS = {
    "azure": "azure.ai.openai",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""The conventions' names for our providers, where they differ."""
Cost = Callable[[Response], Decimal | None]
T = TypeVar("T")
P = ParamSpec("P")
_SETTINGS = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "choices": "choice.count",
}
_TOKENS = [4**power for power in range(14)]
_SECONDS = [0.01 * 2**power for power in range(14)]


class ModelCall:
    """One call of a model, from the request to the end of the response."""

    def __init__(self, operation: str, provider: str, model: str | None, url: str | None) -> None:
        self._began = perf_counter()
        self._first: float | None = None
        self._span: Any = None
        self._common = _place(operation, provider, model, url)
        self._is_open = True

    @classmethod
    def of(cls, request: Request, provider: str, url: str | None = None) -> ModelCall | None:
        """Start a chat span; None without tracing."""
        if not is_traced():
            return None
        call = cls("chat", provider, request.model, url)
        with suppress(Exception):
            call.start(_request(request))
        return call

    def start(self, attributes: Mapping[str, Any]) -> None:
        """Start the span."""
        making = tracer()
        if making is None:
            return
        from opentelemetry.trace import SpanKind

        common = self._common
        name = f"{common['gen_ai.operation.name']} {common.get('gen_ai.request.model', '')}".strip()
        system = {"gen_ai.system": common["gen_ai.provider.name"]}  # its earlier name
        self._span = making.start_span(
            name, kind=SpanKind.CLIENT, attributes={**common, **system, **attributes}
        )

    @contextmanager
    def active(self) -> Generator[None, None, None]:
        """Make the span current within the block, so that requests propagate it."""
        if self._span is None:
            yield
            return
        from opentelemetry.trace import use_span

        with use_span(self._span, record_exception=False, set_status_on_exception=False):
            yield

    async def watched(self, work: Awaitable[Response], cost: Cost | None = None) -> Response:
        """Await the response, and record its outcome."""
        try:
            with self.active():
                response = await work
        except BaseException as error:
            self.failed(error)
            raise
        self.answered(response, cost)
        return response

    def begun(self) -> None:
        """The first part of the response has arrived."""
        if self._first is None:
            self._first = perf_counter() - self._began

    def answered(self, response: Response, cost: Cost | None = None) -> None:
        """The response has ended, complete or not."""
        if not self._is_open:
            return
        attributes = _response(response)
        if self._span is not None:
            with suppress(Exception):
                spent = None if cost is None else cost(response)
                if spent is not None:
                    attributes["operation.cost"] = attributes["gen_ai.usage.cost"] = float(spent)
            if self._first is not None:
                attributes["gen_ai.response.time_to_first_chunk"] = self._first
        self._end(attributes, response.usage)

    def used(self, usage: Usage | None) -> None:
        """The call has ended, with this usage."""
        self._end(_usage(usage), usage)

    def failed(self, error: BaseException, partial: Response | None = None) -> None:
        """The call has failed; the error's text may quote content, and is left out."""
        attributes = {} if partial is None else _response(partial)
        self._end(attributes, None if partial is None else partial.usage, error)

    def _end(
        self,
        attributes: dict[str, Any],
        usage: Usage | None,
        error: BaseException | None = None,
    ) -> None:
        if not self._is_open:
            return
        self._is_open = False
        if self._span is not None:
            _finish(self._span, attributes, error)
        measuring = meter()
        if measuring is None:
            return
        kept = {} if error is None else {"error.type": _kind(error)}
        if "gen_ai.response.model" in attributes:
            kept["gen_ai.response.model"] = attributes["gen_ai.response.model"]
        seconds = perf_counter() - self._began
        with suppress(Exception):
            _measure(measuring, {**self._common, **kept}, seconds, self._first, usage)


@contextmanager
def embedding_call(
    provider: str, model: str, url: str | None
) -> Generator[Callable[[Usage | None], None], None, None]:
    """A span for an embedding call; yields a function that records the usage."""
    call = ModelCall("embeddings", provider, model, url)
    with suppress(Exception):
        call.start({})
    try:
        with call.active():
            yield call.used
    except BaseException as error:
        call.failed(error)
        raise


@contextmanager
def agent_run(
    name: str, model: str, session: str | None
) -> Generator[Callable[..., None], None, None]:
    """A span for an agent run; yields a function that records the outcome."""
    making = tracer()
    if making is None:
        yield _nothing
        return
    provider, _, model_name = model.partition(":")
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": PROVIDERS.get(provider, provider),
        "gen_ai.request.model": model_name or model,
        **({"gen_ai.agent.name": name} if name else {}),
        **({} if session is None else {"gen_ai.conversation.id": session}),
    }
    with _span(making, f"invoke_agent {name}".strip(), attributes) as span:

        def told(usage: Usage | None, cost: Decimal | None) -> None:
            _set(span, _usage(usage))
            if cost is not None:
                _set(span, {"operation.cost": float(cost)})

        yield told


@contextmanager
def tool_run(
    call: ToolCall, definition: ToolDefinition
) -> Generator[Callable[[ToolResult], None], None, None]:
    """A span for a tool run; yields a function that records the result."""
    making = tracer()
    if making is None:
        yield _nothing
        return
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.type": "function",
    }
    if definition.description:
        attributes["gen_ai.tool.description"] = definition.description
    has_content = captures_content()
    if has_content:
        attributes["gen_ai.tool.call.arguments"] = call.raw_arguments
    with _span(making, f"execute_tool {call.name}", attributes) as span:

        def told(result: ToolResult) -> None:
            if has_content:
                with suppress(Exception):
                    _set(span, {"gen_ai.tool.call.result": result_content(result)})
            if result.is_error:
                _fail(span, "tool_error")

        yield told


class _Kept(Protocol):
    """An object that stores a session."""

    @property
    def identity(self) -> Any: ...
    @property
    def storage(self) -> object: ...


_K = TypeVar("_K", bound=_Kept)


def history_step(
    step: str,
) -> Callable[
    [Callable[Concatenate[_K, P], Awaitable[T]]], Callable[Concatenate[_K, P], Awaitable[T]]
]:
    """Decorator: a span for a method that reads or writes a session in its store."""

    def traced(
        method: Callable[Concatenate[_K, P], Awaitable[T]],
    ) -> Callable[Concatenate[_K, P], Awaitable[T]]:
        @wraps(method)
        def called(keeper: _K, /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
            done = method(keeper, *args, **kwargs)
            return done if tracer() is None else _stepped(step, keeper, done)

        return called

    return traced


async def _stepped(step: str, keeper: _Kept, done: Awaitable[T]) -> T:
    attributes = {
        "gen_ai.conversation.id": keeper.identity.digest,
        "dragoman.history.storage": type(keeper.storage).__name__,
    }
    with _span(tracer(), f"history {step}", attributes):
        return await done


# --- current spans


@contextmanager
def _span(making: Any, name: str, attributes: Mapping[str, Any]) -> Generator[Any, None, None]:
    from opentelemetry.trace import INVALID_SPAN, use_span

    span: Any = INVALID_SPAN
    with suppress(Exception):
        span = making.start_span(name, attributes=attributes)
    error: BaseException | None = None
    try:
        with use_span(span, record_exception=False, set_status_on_exception=False):
            yield span
    except BaseException as raised:
        error = raised
        raise
    finally:
        _finish(span, {}, error)
        del error


def _finish(span: Any, attributes: Mapping[str, Any], error: BaseException | None) -> None:
    _set(span, attributes)
    if error is not None:
        _fail(span, _kind(error))
    with suppress(Exception):
        span.end()


def _fail(span: Any, kind: str) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR))


def _set(span: Any, attributes: Mapping[str, Any]) -> None:
    with suppress(Exception):
        if attributes and span.is_recording():
            span.set_attributes(dict(attributes))


def _nothing(*_: object) -> None:
    """Does nothing: tracing is off."""


# --- attributes


def _request(request: Request) -> dict[str, Any]:
    sampling = request.sampling
    found: dict[str, Any] = {}
    if sampling != UNSAID:
        for field, name in _SETTINGS.items():
            value = getattr(sampling, field)
            if value is not None:
                found[f"gen_ai.request.{name}"] = value
        if sampling.stop:
            found["gen_ai.request.stop_sequences"] = list(sampling.stop)
    if request.stream:
        found["gen_ai.request.stream"] = True
    if request.output is not None and request.output.format != "text":
        found["gen_ai.output.type"] = "json"
    if captures_content():
        with suppress(Exception):
            found |= request_content(request)
    return found


def _response(response: Response) -> dict[str, Any]:
    found = _usage(response.usage)
    if response.id is not None:
        found["gen_ai.response.id"] = response.id
    if response.model is not None:
        found["gen_ai.response.model"] = response.model
    reasons = [str(choice.finish) for choice in response.choices if choice.finish is not None]
    if reasons:
        found["gen_ai.response.finish_reasons"] = reasons
    if captures_content():
        with suppress(Exception):
            found |= response_content(response)
    return found


def _usage(usage: Usage | None) -> dict[str, Any]:
    if usage is None:
        return {}
    found = {
        "gen_ai.usage.input_tokens": usage.total_input,
        "gen_ai.usage.output_tokens": usage.total_output,
    }
    more = {
        "cache_read.input_tokens": usage.cache_read,
        "cache_creation.input_tokens": usage.cache_write,
        "reasoning.output_tokens": usage.thinking,
    }
    return found | {f"gen_ai.usage.{name}": count for name, count in more.items() if count}


@lru_cache(maxsize=128)
def _place(operation: str, provider: str, model: str | None, url: str | None) -> Mapping[str, Any]:
    """The common attributes of all calls to a model."""
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": PROVIDERS.get(provider, provider),
        **({} if model is None else {"gen_ai.request.model": model}),
        **_server(url),
    }


def _server(url: str | None) -> dict[str, Any]:
    if url is None:
        return {}
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return {}
    if host is None:
        return {}
    return {"server.address": host, "server.port": port or (80 if parts.scheme == "http" else 443)}


def _kind(error: BaseException) -> str:
    """The `error.type` of an error: the provider's status, or our class name."""
    if isinstance(error, ProviderError) and error.status is not None:
        return str(error.status)
    return type(error).__qualname__


# --- metrics


class _Instruments:
    """The instruments of the current meter provider."""

    meter: Any = None
    duration: Any = None
    first: Any = None
    tokens: Any = None


def _measure(
    measuring: Any, common: Mapping[str, Any], seconds: float, first: float | None,
    usage: Usage | None,
) -> None:  # fmt: skip
    kept = _Instruments
    if kept.meter is not measuring:
        kept.duration = _histogram(measuring, "operation.duration", "s", _SECONDS)
        kept.first = _histogram(measuring, "operation.time_to_first_chunk", "s", _SECONDS)
        kept.tokens = _histogram(measuring, "token.usage", "{token}", _TOKENS)
        kept.meter = measuring
    kept.duration.record(seconds, common)
    if first is not None:
        kept.first.record(first, common)
    if usage is not None and "error.type" not in common:
        kept.tokens.record(usage.total_input, {**common, "gen_ai.token.type": "input"})
        kept.tokens.record(usage.total_output, {**common, "gen_ai.token.type": "output"})


def _histogram(measuring: Any, name: str, unit: str, bounds: list[Any]) -> Any:
    return measuring.create_histogram(
        f"gen_ai.client.{name}", unit=unit, explicit_bucket_boundaries_advisory=bounds
    )
