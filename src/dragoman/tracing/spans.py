"""Spans for model calls, agent runs, tool runs and history access.

Names and attributes follow OpenTelemetry's conventions for generative AI. Without tracing
(`switch`), none of this is created.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, get_running_loop
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from decimal import Decimal
from functools import wraps
from time import perf_counter, time_ns
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCall, ToolDefinition, ToolResult
from dragoman.model.usage import Usage
from dragoman.tracing.attributes import (
    described_agent,
    described_tool,
    error_type,
    is_failure,
    place,
    request_attributes,
    response_attributes,
    text,
    usage_attributes,
)
from dragoman.tracing.current import Span
from dragoman.tracing.messages import request_content, response_content, result_content
from dragoman.tracing.metrics import measure
from dragoman.tracing.switch import captures_content, meter, tracer

Cost = Callable[[Response], Decimal | None]
T = TypeVar("T")
P = ParamSpec("P")


# --- model calls


class ModelCall:
    """One call of a model, from the request to the end of the response."""

    __slots__ = (
        "_began", "_first", "_found", "_has_content", "_loop", "_meter", "_place", "_span",
        "is_open",
    )  # fmt: skip

    def __init__(
        self, operation: str, provider: str, model: str | None, url: str | None, making: Any,
        measuring: Any, *, request: Request | None = None, took: float = 0.0,
    ) -> None:  # fmt: skip
        self._began = perf_counter() - took
        self._first: float | None = None
        self._loop: AbstractEventLoop | None = None
        self._meter = measuring
        self._place = here = place(operation, provider, model, url)
        began = time_ns() - int(took * 1e9) if took else None
        self._span = Span(making, here.name, here.attributes, is_client=True, began=began)
        self.is_open = True
        """Whether its outcome is still unknown."""
        self._has_content = False
        self._found: dict[str, Any] = {}  # set all at once, at the end
        if self._span.is_recording and request is not None:
            self._describe(request)

    @classmethod
    def of(
        cls, request: Request, provider: str, url: Callable[[], str | None] = lambda: None,
        *, took: float = 0.0,
    ) -> ModelCall | None:  # fmt: skip
        """Start a chat span, that many seconds ago; None without tracing."""
        making, measuring = tracer(), meter()
        if making is None and measuring is None:
            return None
        seen = _calls.get()
        if seen is not None:
            seen.is_traced = True
        return cls(
            "chat", provider, request.model, url(), making, measuring, request=request, took=took
        )

    def _describe(self, request: Request) -> None:
        self._found = request_attributes(request)
        self._has_content = captures_content()
        if self._has_content:
            with suppress(Exception):
                self._found |= request_content(request)

    def active(self) -> Span:
        """A context manager: the span is current within the block, so requests propagate it."""
        return self._span

    async def watched(self, work: Awaitable[Response], cost: Cost | None = None) -> Response:
        """Await the response, and record its outcome."""
        try:
            with self._span:
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
        if not self.is_open:
            return
        if self._span.is_recording:
            self._take_outcome(response)
            if cost is not None:
                with suppress(Exception):
                    spent = cost(response)
                    if spent is not None:
                        price = float(spent)
                        self._found |= {"operation.cost": price, "gen_ai.usage.cost": price}
        self._end(response.model, response.usage)

    def used(self, usage: Usage | None, dimensions: int | None = None) -> None:
        """The call has ended, with this usage, and embeddings of this size."""
        self._found |= usage_attributes(usage)
        if dimensions is not None:
            self._found["gen_ai.embeddings.dimension.count"] = dimensions
        self._end(None, usage)

    def failed(self, error: BaseException, partial: Response | None = None) -> None:
        """The call has failed; the error's text may quote content, and is left out."""
        if not self.is_open:
            return
        if partial is None:
            self._end(None, None, error_type(error))
            return
        if self._span.is_recording:
            self._take_outcome(partial)
        self._end(partial.model, partial.usage, error_type(error))

    def end_if_dropped(self) -> None:
        """End the span even if the call is never ended: a stream may be dropped unread."""
        self._loop = get_running_loop()

    def __del__(self) -> None:
        if not self.is_open or self._loop is None:
            return
        # Not here: garbage may be collected anywhere, such as while a processor holds its lock.
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._span.end, self._found)

    def _end(self, model: str | None, usage: Usage | None, error: str | None = None) -> None:
        if not self.is_open:
            return
        self.is_open = False
        if self._first is not None:
            self._found["gen_ai.response.time_to_first_chunk"] = self._first
        self._span.end(self._found, error)
        if self._meter is not None:
            seconds = perf_counter() - self._began
            measure(self._meter, self._place, model, error, seconds, self._first, usage)

    def _take_outcome(self, response: Response) -> None:
        self._found |= response_attributes(response)
        if self._has_content:
            with suppress(Exception):
                self._found |= response_content(response)


class AgentCall:
    """A call of any model by an agent: it gets a span here if the model creates none itself."""

    __slots__ = ("_began", "_model", "_request", "_response", "_seen", "_token")

    def __init__(self, request: Request, model: str) -> None:
        self._request, self._model = request, model
        self._seen = _Seen()
        self._response: Response | None = None

    def ended(self, response: Response) -> None:
        """Record the response."""
        self._response = response

    def __enter__(self) -> Self:
        self._began = perf_counter()
        self._token = _calls.set(self._seen)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:  # fmt: skip
        with suppress(ValueError):  # an abandoned coroutine, closed in another context
            _calls.reset(self._token)
        if self._seen.is_traced:
            return
        provider, _, model = self._model.partition(":")
        asked = self._request.replace(model=self._request.model or model or self._model)
        call = ModelCall.of(asked, provider, took=perf_counter() - self._began)
        if call is None:
            return
        if error is not None and is_failure(error):
            call.failed(error)
        else:
            call.answered(self._response or Response())


class _Seen:
    """Whether a span was created for a call."""

    is_traced = False


_calls: ContextVar[_Seen | None] = ContextVar("dragoman_model_calls", default=None)


@contextmanager
def embedding_call(
    provider: str, model: str, url: str | None
) -> Generator[Callable[[Usage | None, int | None], None], None, None]:
    """A span for an embedding call; yields a function that records usage and dimensions."""
    call = ModelCall("embeddings", provider, model, url, tracer(), meter())
    try:
        with call.active():
            yield call.used
    except BaseException as error:
        call.failed(error)
        raise


# --- agents, tools and histories


class Untraced:
    """Stands for a run or a call without tracing."""

    __slots__ = ()
    span = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        return None

    def ended(self, *_outcome: object) -> None:
        """Record nothing."""


UNTRACED = Untraced()


class _Block(Span):
    """A span for a block of code; an error that leaves the block is that of the span."""

    __slots__ = ("_error", "_found")

    def __init__(self, making: Any, name: str, attributes: Mapping[str, Any]) -> None:
        super().__init__(making, name, attributes)
        self._found: dict[str, Any] = {}
        self._error: str | None = None

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.pause()
        if error is not None and is_failure(error):
            self._error = error_type(error)
        self.end(self._found, self._error)


class AgentRun(_Block):
    """A span for an agent run."""

    __slots__ = ()

    def __init__(self, making: Any, name: str, model: str, session: str | None) -> None:
        title, attributes = described_agent(name, model)
        if session is not None:
            attributes = {**attributes, "gen_ai.conversation.id": session}
        super().__init__(making, title, attributes)

    @property
    def span(self) -> Span:
        """The span itself."""
        return self

    def ended(self, usage: Usage | None, cost: Decimal | None) -> None:
        """Record the outcome."""
        if self.is_recording:
            self._found = usage_attributes(usage)
            if cost is not None:
                self._found["operation.cost"] = float(cost)


class ToolRun(_Block):
    """A span for a tool run."""

    __slots__ = ("_has_content",)

    def __init__(self, making: Any, call: ToolCall, definition: ToolDefinition) -> None:
        title, common = described_tool(call.name, definition.description)
        super().__init__(making, title, {**common, "gen_ai.tool.call.id": text(call.id)})
        self._has_content = self.is_recording and captures_content()
        if self._has_content:
            self._found["gen_ai.tool.call.arguments"] = text(call.raw_arguments)

    def ended(self, result: ToolResult) -> None:
        """Record the result."""
        if result.is_error:
            self._error = "tool_error"
        if self._has_content:
            with suppress(Exception):
                self._found["gen_ai.tool.call.result"] = result_content(result)


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
            making = tracer()
            return done if making is None else _stepped(making, step, keeper, done)

        return called

    return traced


async def _stepped(making: Any, step: str, keeper: _Kept, done: Awaitable[T]) -> T:
    attributes = {
        "gen_ai.conversation.id": keeper.identity.digest,
        "dragoman.history.storage": type(keeper.storage).__name__,
    }
    with _Block(making, f"history {step}", attributes):
        return await done
