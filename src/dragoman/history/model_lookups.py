"""Looks up dialects and models by name.

`history` must not import wire or providers. It takes dialect and model objects; names are looked up
through the top-level package, when needed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple, Protocol, runtime_checkable

from dragoman.errors import InvalidInputError
from dragoman.model.requests import Request


@runtime_checkable
class EncodesRequests(Protocol):
    """The part of a dialect that a history needs."""

    def encode_request(self, request: Request) -> Any:
        """Encodes a request."""
        ...


@runtime_checkable
class HasContextWindow(Protocol):
    """A model with a known context window."""

    @property
    def context_window(self) -> int | None:
        """Tokens, prompt and response together; `None` if unknown."""
        ...


class Recipient(NamedTuple):
    """The dialect, target and model that a request is encoded for."""

    dialect: EncodesRequests
    target: Any = None
    """The target, or `None` for the dialect's default."""
    model: str | None = None
    """The model's name on the wire."""
    spoken: str | None = None
    """The model's name as given, with the provider if there was one."""

    def encoded(self, request: Request) -> Any:
        """Encodes a request for this recipient."""
        if self.target is None:
            return self.dialect.encode_request(request)
        encode: Any = self.dialect.encode_request
        return encode(request, self.target)


def recipient_of(name: str | EncodesRequests, model: str | None) -> Recipient:
    """Resolves a dialect, or the name of a dialect, provider or `provider:model`.

    Names are interpreted as in `translate`. A model named in `provider:model` takes effect.
    """
    if not isinstance(name, str):
        if not hasattr(name, "encode_request"):
            msg = f"expected a dialect, its name or provider:model, not {type(name).__name__}"
            raise InvalidInputError(msg)
        return Recipient(name, model=model, spoken=model)
    ours = import_module("dragoman")
    if ours.is_dialect(name):
        return Recipient(ours.dialect(name), model=model, spoken=model)
    target = ours.target_of(name, model)
    named = target.model or model
    spoken = name if ":" in name or named is None else f"{name}:{named}"
    return Recipient(ours.dialect(target.dialect), target, named, None if named is None else spoken)


def omission(path: str, reason: str) -> Any:
    """The repair that reports messages missing from a request."""
    return import_module("dragoman").Repair(
        path=path, rule="window", action="dropped", reason=reason
    )


def window_of(model: str | int | HasContextWindow | None) -> int | None:
    """A model's context window in tokens, or `None` if unknown."""
    if model is None:
        return None
    if isinstance(model, str):
        known: int | None = import_module("dragoman").context_window(model)
        return known
    window = model.context_window if isinstance(model, HasContextWindow) else model
    if window is None:
        return None
    if type(window) is int and window > 0:
        return window
    msg = "model must be a name, a number of tokens, or an object with a context_window"
    raise InvalidInputError(msg)


def tool_input_count(dialect: str) -> str | None:
    """The usage field of a dialect that counts the input from provider-run tools."""
    found = import_module("dragoman").evidence().described(dialect)
    field: str | None = None if found is None else found.tool_input_count
    return field
