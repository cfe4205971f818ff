"""What people name by a string and other layers know: asked for as a user would, when needed.

`history` imports nothing of the wire and the providers. It is handed dialects and models; a name
in their place is looked up through the package's public face.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple, Protocol, runtime_checkable

from dragoman.errors import InvalidInputError
from dragoman.model.requests import Request


@runtime_checkable
class EncodesRequests(Protocol):
    """A dialect, as far as a history needs one."""

    def encode_request(self, request: Request) -> Any:
        """The request in the dialect."""
        ...


@runtime_checkable
class HasContextWindow(Protocol):
    """A model that knows how many tokens it takes."""

    @property
    def context_window(self) -> int | None:
        """Tokens, question and answer together; None where it is not known."""
        ...


class Recipient(NamedTuple):
    """Whom a request is encoded for."""

    dialect: EncodesRequests
    target: Any = None
    """The facts about a provider's model; None: the dialect's own."""
    model: str | None = None
    """The name that the model is sent under."""
    spoken: str | None = None
    """How the model was named, with its provider where one was."""

    def encoded(self, request: Request) -> Any:
        """The request as it is sent to them."""
        if self.target is None:
            return self.dialect.encode_request(request)
        encode: Any = self.dialect.encode_request
        return encode(request, self.target)


def recipient_of(name: str | EncodesRequests, model: str | None) -> Recipient:
    """Whom a dialect, its name, a provider's or `provider:model` means; a model named there counts.

    Names are understood as `translate` does.
    """
    if not isinstance(name, str):
        if not hasattr(name, "encode_request"):
            msg = f"a dialect, its name or provider:model is needed, not {type(name).__name__}"
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
    """The report of messages that are not in a request."""
    return import_module("dragoman").Repair(
        path=path, rule="window", action="dropped", reason=reason
    )


def window_of(model: str | int | HasContextWindow | None) -> int | None:
    """How many tokens a model takes; None where that is not known."""
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
    msg = "a model is named, or is a number of tokens, or has a context_window that is one"
    raise InvalidInputError(msg)


def tool_input_count(dialect: str) -> str | None:
    """The field of a dialect's usage that counts what the provider's own tools brought in."""
    found = import_module("dragoman").evidence().described(dialect)
    field: str | None = None if found is None else found.tool_input_count
    return field
