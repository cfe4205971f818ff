"""The `Model` protocol, and opening models by name."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from inspect import isawaitable, iscoroutine
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, overload, runtime_checkable

from dragoman.errors import InvalidInputError
from dragoman.model.events import Event
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.value import expect
from dragoman.providers.provider import Provider
from dragoman.transport.blocking import BlockingStream

_OWN = re.compile(r"(local|echo|scripted)(?:[:/](.*))?", re.DOTALL)


class ModelStream(Protocol):
    """A response stream: an async iterable of events, usable once."""

    @property
    def response(self) -> Response:
        """The response so far."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether the model has marked the response as complete."""
        ...

    async def close(self) -> None:
        """Stop reading. Calling it again has no effect."""
        ...

    def __aiter__(self) -> AsyncIterator[Event]: ...


@runtime_checkable
class Model(Protocol):
    """Anything that answers requests: a `Client`, a `LocalModel`, an `EchoModel`, or your own."""

    @property
    def name(self) -> str:
        """The model, as `provider:model`."""
        ...

    async def send(self, request: Request | Any, /) -> Response:
        """The model's response. Takes a `Request`, or whatever `Messages.from_any` takes."""
        ...

    def stream(self, request: Request | Any, /) -> ModelStream:
        """The model's response as a stream."""
        ...

    async def close(self) -> None:
        """Close connections. Calling it again has no effect."""
        ...


class OpenedStream(ModelStream, Protocol):
    """The stream of a model opened by name: `async with` closes it."""

    async def collect(self) -> Response:
        """Read to the end, and return the whole response."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None, /,
    ) -> None: ...  # fmt: skip


class OpenedModel(Model, Protocol):
    """A model opened by name: `async with` closes it. The blocking variant of `x` is `x_sync`."""

    def stream(self, request: Request | Any, /) -> OpenedStream:
        """The model's response as a stream."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None, /,
    ) -> None: ...  # fmt: skip

    def send_sync(self, request: Request | Any, /) -> Response:
        """See `send`."""
        ...

    def stream_sync(self, request: Request | Any, /) -> BlockingStream:
        """See `stream`; use `for` and `with` instead of `async for` and `async with`."""
        ...

    def close_sync(self) -> None:
        """See `close`."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None, /,
    ) -> None: ...  # fmt: skip


_MEMBERS = ("name", "send", "stream", "close")
_MEMBERS_OF_STREAMS = ("__aiter__", "response", "is_complete", "close")
_METHODS = frozenset({"send", "stream", "close", "__aiter__"})
M = TypeVar("M", bound=Model)


@overload
def open_model(model: str | Provider, **settings: Any) -> OpenedModel: ...
@overload
def open_model(model: M, **settings: Any) -> M: ...
def open_model(model: str | Provider | Model, **settings: Any) -> Model:
    """Open a model by name; a model that is already open is returned unchanged.

    - `provider:model`: a `Client`.
    - `local:smollm2`, `local:~/models/x.gguf`: a `LocalModel`, on this machine.
    - `echo:`: an `EchoModel`, which repeats its input; for trying things out.
    - `scripted:`: a `ScriptedModel`; pass its `script`, or name a file (`scripted:play.json`).

    Settings are those of the class. Nothing is connected, downloaded or started before first use.

    >>> open_model("echo:").name
    'echo:'
    """
    if isinstance(model, str):
        own = _OWN.fullmatch(model)
        return _client(model, settings) if own is None else _own(own[1], own[2], settings)
    if isinstance(model, Provider):
        return _client(model, settings)
    _expect_model(model)
    if settings:
        msg = "settings can't be applied to a model that is already open"
        raise InvalidInputError(msg)
    return model


def _expect_model(model: object) -> None:
    if isinstance(model, type):  # a class has the methods of its instances
        msg = f"a model must be an instance, not a class: write {model.__name__}(…)"
        raise InvalidInputError(msg)
    kind, missing = type(model).__name__, _missing(model, _MEMBERS)
    if missing == _MEMBERS:
        msg = (
            f"a model must be a name, such as `provider:model`, a Provider, or an object with"
            f" {', '.join(_MEMBERS)}; not {kind}, which has none of these"
        )
        raise InvalidInputError(msg)
    if missing:
        msg = f"a model must have {', '.join(_MEMBERS)}; {kind} has no {', '.join(missing)}"
        raise InvalidInputError(msg)
    expect(model.name, str, f"the name of the model {kind}")  # type: ignore[attr-defined]  # it is there


def expect_stream(stream: object, model: Model) -> None:
    """Raise unless a model's `stream` returned a `ModelStream`; names what is missing."""
    missing = _missing(stream, _MEMBERS_OF_STREAMS)
    if not missing:
        return
    if iscoroutine(stream):
        stream.close()  # nobody will await it
    msg = (
        f"the return value of {type(model).__name__}.stream has no {', '.join(missing)}; it must"
        f" have {', '.join(_MEMBERS_OF_STREAMS)}, and stream must not be async"
    )
    raise InvalidInputError(msg)


def expect_awaitable(answer: object, model: Model) -> None:
    """Raise unless the return value of a model's `send` is awaitable."""
    if not isawaitable(answer):
        msg = f"{type(model).__name__}.send must be async: `async def send(self, request)`"
        raise InvalidInputError(msg)


def _missing(value: object, names: tuple[str, ...]) -> tuple[str, ...]:
    """The missing members, including methods that are not callable."""
    return tuple([name for name in names if not _has(value, name)])


def _has(value: object, name: str) -> bool:
    if name in _METHODS:
        return callable(getattr(value, name, None))
    return hasattr(type(value), name) or hasattr(value, name)  # the first runs no property


def _client(model: str | Provider, settings: dict[str, Any]) -> OpenedModel:
    from dragoman.transport.client import Client

    return Client(model, **settings)


def _own(kind: str, rest: str | None, settings: dict[str, Any]) -> OpenedModel:
    if kind == "local":
        from dragoman.transport.local.model import LocalModel

        return LocalModel(rest or "", **settings)
    if kind == "echo":
        from dragoman.transport.echo import EchoModel

        return EchoModel(rest or "", **settings)
    from dragoman.transport.scripted import ScriptedModel

    return ScriptedModel.from_file(rest, **settings) if rest else ScriptedModel(**settings)
