"""Builds the window that fits a model, and requests from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.history import arguments, model_lookups
from dragoman.history.config import ChatHistoryConfig
from dragoman.history.live_windows import Window
from dragoman.history.trimming import Trimmer
from dragoman.history.unsaved_changes import Pending
from dragoman.model.content import AnyPart
from dragoman.model.requests import AnyTool, Request
from dragoman.model.value import expect


class Sending(ABC):
    """A history that can be sent; `ChatHistory` implements the abstract methods."""

    _config: ChatHistoryConfig
    _trimmer: Trimmer

    @property
    @abstractmethod
    def _pending(self) -> Pending: ...

    async def window(
        self,
        model: str | int | model_lookups.HasContextWindow | None = None,
        *,
        tools: Iterable[AnyTool] = (),
        system: Iterable[AnyPart] = (),
    ) -> Window:
        """The messages to send: as many whole turns as fit, starting from the latest.

        `model` determines how many tokens fit: a name, a number, or an object with a
        `context_window`; the default is the config's. Tools and system instructions that are sent
        with the messages count too. `window.omitted` is the number of messages left out. Truncation
        for one model and limit does not affect other windows. Raises `ContextTooSmall` if not even
        the last turn fits.
        """
        size = model_lookups.window_of(model) or self._config.context_window
        sent = arguments.tools_of(tools), arguments.parts_of(system)
        return await self._trimmer.window(self._pending, model, size, *sent)

    async def to_wire(
        self,
        dialect: str | model_lookups.EncodesRequests,
        *,
        model: str | None = None,
        tools: Iterable[AnyTool] = (),
        system: Iterable[AnyPart] = (),
        **settings: Any,
    ) -> Any:
        """Encodes the window as a request; returns an `Encoded`, with its losses.

        `dialect` is a dialect, a provider or `provider:model`, as in `translate`. `settings` are
        further fields of `Request` or of its `Sampling`, such as `max_tokens=500`. Omitted messages
        are reported in `repairs`, with the rule `window`.
        """
        expect(model, (str, type(None)), "the model's name")
        recipient = model_lookups.recipient_of(dialect, model)
        request = _request(settings).replace(
            model=recipient.model,
            tools=arguments.tools_of(tools),
            system=arguments.parts_of(system),
        )
        window = await self.window(recipient.spoken, tools=request.tools, system=request.system)
        encoded = recipient.encoded(request.replace(messages=tuple(window)))
        _report(encoded, window)
        return encoded


def _report(encoded: Any, window: Window) -> None:
    """Adds a repair for omitted messages; custom dialects may not support repairs."""
    if not window.omitted or not isinstance(getattr(encoded, "repairs", None), tuple):
        return
    they = "message of the history is" if window.omitted == 1 else "messages of the history are"
    reason = f"{window.omitted} earlier {they} omitted before this one, because they don't fit"
    repair = model_lookups.omission(f"messages[{window.omitted_at}]", reason)
    encoded.repairs = (repair, *encoded.repairs)


def _request(settings: dict[str, Any]) -> Request:
    if "messages" in settings:
        msg = "messages can't be passed: they come from the history"
        raise InvalidInputError(msg)
    return Request().with_settings(**settings)
