"""What every model can do, wherever it runs; and a model from its name."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, overload, runtime_checkable

from dragoman.errors import InvalidInputError
from dragoman.model.events import Event
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.providers.provider import Provider

_OWN = re.compile(r"(local|echo|scripted)(?:[:/](.*))?", re.DOTALL)


class ModelStream(Protocol):
    """An answer that is coming in: an async iterable of events, to be gone through once."""

    @property
    def response(self) -> Response:
        """What has arrived so far."""
        ...

    @property
    def is_complete(self) -> bool:
        """Whether the model said that it is done."""
        ...

    async def close(self) -> None:
        """Stop listening. Calling it again does nothing."""
        ...

    def __aiter__(self) -> AsyncIterator[Event]: ...


@runtime_checkable
class Model(Protocol):
    """Whatever answers requests: a `Client`, a `LocalModel`, an `EchoModel`, one of your own."""

    @property
    def name(self) -> str:
        """The model, as `provider:model`."""
        ...

    async def send(self, request: Request | Any, /) -> Response:
        """The model's answer. Takes a `Request`, or whatever `Messages.from_any` takes."""
        ...

    def stream(self, request: Request | Any, /) -> ModelStream:
        """The model's answer as it comes."""
        ...

    async def close(self) -> None:
        """Let go of connections. Calling it again does nothing."""
        ...


class OpenedStream(ModelStream, Protocol):
    """The stream of a model that was opened by name: `async with` closes it."""

    async def collect(self) -> Response:
        """The whole response, when it is there."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None, /,
    ) -> None: ...  # fmt: skip


class OpenedModel(Model, Protocol):
    """A model that was opened by name: `async with` closes it."""

    def stream(self, request: Request | Any, /) -> OpenedStream:
        """The model's answer as it comes."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None, /,
    ) -> None: ...  # fmt: skip


_MEMBERS = ("name", "send", "stream", "close")
M = TypeVar("M", bound=Model)


@overload
def open_model(model: str | Provider, **settings: Any) -> OpenedModel: ...
@overload
def open_model(model: M, **settings: Any) -> M: ...
def open_model(model: str | Provider | Model, **settings: Any) -> Model:
    """The model of that name; one that is open already is returned as it is.

    - `provider:model`: a `Client`.
    - `local:smollm2`, `local:~/models/x.gguf`: a `LocalModel`, on this machine.
    - `echo:`: an `EchoModel`, which repeats what it is told; for trying things out.
    - `scripted:`: a `ScriptedModel`; its `script` is given, or in a file (`scripted:play.json`).

    Settings are those of the class. Nothing is connected, fetched or started before it is used.

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
        msg = "a model that is open already takes no settings"
        raise InvalidInputError(msg)
    return model


def _expect_model(model: object) -> None:
    is_class = isinstance(model, type)  # which has the methods of its instances
    kind = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
    missing = [name for name in _MEMBERS if not hasattr(model, name)]
    if is_class or len(missing) == len(_MEMBERS):
        msg = f"a model is a name, as in `provider:model`, a Provider or a Model, not {kind}"
        raise InvalidInputError(msg)
    if missing:
        msg = f"a model has {', '.join(_MEMBERS)}; {kind} has no {', '.join(missing)}"
        raise InvalidInputError(msg)


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
