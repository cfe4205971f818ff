"""What people name by a string and other layers know: asked for as a user would, when needed.

`history` imports nothing of the wire and the providers. It is handed dialects and models; a name
in their place is looked up through the package's public face.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol, runtime_checkable

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


def dialect_of(dialect: str | EncodesRequests) -> EncodesRequests:
    """The dialect itself, or the one of that name."""
    if isinstance(dialect, str):
        found: EncodesRequests = import_module("dragoman").dialect(dialect)
        return found
    if not hasattr(dialect, "encode_request"):
        msg = f"a dialect or its name is needed, not {type(dialect).__name__}"
        raise InvalidInputError(msg)
    return dialect


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
