"""`Exported`, the result of the `to_*` functions, and their shared helpers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from dragoman.errors import ConfigError, InvalidInputError, LossError
from dragoman.model.collection import Messages, ProvidesMessages
from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.wire.dialect import dialect
from dragoman.wire.losses import Loss

Conversation = Message | Iterable[Message] | ProvidesMessages
"""The input of the `to_*` functions: our messages."""


_HALVES = re.compile("[\ud800-\udfff]")


class Exported:
    """A conversation in another library's format, and what was lost."""

    __slots__ = ("losses", "messages", "omitted", "system")

    def __init__(
        self,
        messages: list[Any],
        *,
        system: Any = None,
        losses: Iterable[Loss] = (),
        omitted: Iterable[Loss] = (),
    ) -> None:
        self.messages = messages
        self.system = system
        """The instructions, if the library has them outside the list of messages; else None."""
        self.losses = tuple(losses)
        """Content that is not in the messages, or was changed."""
        self.omitted = tuple(omitted)
        """Facts about messages that the library has no fields for: usage, finish reasons, times."""

    def or_raise(self) -> Exported:
        """Return self if nothing was lost, else raise `LossError`."""
        if self.losses:
            msg = f"{len(self.losses)} things can't be represented in the other library; see losses"
            raise LossError(msg, losses=self.losses)
        return self

    def __repr__(self) -> str:
        return f"Exported({len(self.messages)} messages, {len(self.losses)} losses)"


def conversation_of(messages: Conversation) -> Messages:
    """Convert the input of a `to_*` function to `Messages`."""
    given: object = messages
    if isinstance(messages, Message):
        return Messages(messages)
    if isinstance(messages, (Messages, ProvidesMessages)):
        return Messages.from_any(messages)
    if not isinstance(given, Iterable):
        msg = f"expected messages, not {type(messages).__name__}"
        raise InvalidInputError(msg)
    return Messages.of(given)


def library(module: str, package: str) -> Any:
    """Import a module of another library; raises `ConfigError` if it is not installed."""
    try:
        return import_module(module)
    except ImportError:
        problem = f"this needs {package}: pip install {package}"
    raise ConfigError(problem)


def built(make: Callable[[], Any], what: str) -> Any:
    """Build a library's object; its errors, which may quote content, are replaced by ours."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - any error of a library's validation
        problem = f"{what} can't be built from these messages ({type(error).__name__})"
    raise InvalidInputError(problem)


def without_halves(written: Any, losses: list[Loss]) -> Any:
    """Replace lone surrogates, which pydantic refuses in strings, and report the loss."""
    found = _replaced(written)
    if found is not written and found != written:
        losses.append(Loss("messages", "lone surrogates are replaced"))
    return found


def _replaced(value: Any) -> Any:
    if isinstance(value, str):
        return _HALVES.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_replaced(key): _replaced(item) for key, item in value.items()}
    return [_replaced(item) for item in value] if isinstance(value, list) else value


def wire_export(messages: Messages, name: str) -> tuple[dict[str, Any], list[Loss]]:
    """Encode a conversation as the body of a request; also returns the losses."""
    if not messages:
        return {}, []
    spoken = dialect(name)
    # The caller may continue the conversation: with a prefill, or results of the last calls.
    open_ended = spoken.target.with_flags(
        {"turns.prefill": "free", "turns.pairs_results": not _has_open_calls(messages)}
    )
    encoded = spoken.encode_request(Request(messages=tuple(messages)), open_ended)
    losses = [loss for loss in encoded.losses if loss.path.startswith(("messages", "system"))]
    return encoded.body, [*losses, *_metadata_losses(messages)]


def _has_open_calls(messages: Messages) -> bool:
    """Whether the conversation ends with calls that have no results yet."""
    answered: set[str] = set()
    for message in reversed(messages):
        answered.update(result.call_id for result in message.tool_results)
        if message.tool_calls:
            return not answered.issuperset(call.id for call in message.tool_calls)
        if not message.tool_results:
            return False
    return False


def _metadata_losses(messages: Messages) -> list[Loss]:
    reason = "metadata is not sent to providers"
    return [
        Loss(f"messages[{index}].metadata", reason)
        for index, message in enumerate(messages)
        if message.metadata
    ]


def facts_of(messages: Messages) -> list[Loss]:
    """The facts about messages that requests have no fields for."""
    reason = "requests have no field for it"
    return [
        Loss(f"messages[{index}].{field}", reason)
        for index, message in enumerate(messages)
        for field in ("usage", "finish", "created_at")
        if getattr(message, field) is not None
    ]
