"""What is sent of a history: the window that fits a model, and a request made of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.history import arguments, model_lookups
from dragoman.history.config import ChatHistoryConfig
from dragoman.history.sent_window import Window
from dragoman.history.trimming import Trimmer
from dragoman.history.unsaved_changes import Pending
from dragoman.model.content import AnyPart
from dragoman.model.requests import AnyTool, Request
from dragoman.model.value import expect


class Sending(ABC):
    """A history that can be sent; what it is asked for here is the rest of `ChatHistory`."""

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
        """The messages to send: all that fit, whole turns, from the latest back.

        `model` says how many tokens fit: its name, a number, or anything with a
        `context_window`; the config's otherwise. Tools and system instructions that are sent
        beside the messages take their share. `window.omitted` says how many messages are left
        out. What is cut for one model and limit is out of no other's window. Raises
        `ContextTooSmall` where not even the last turn fits.
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
        """The window as a request: an `Encoded`, with its losses.

        `dialect` is a dialect, a provider or `provider:model`, as `translate` takes them; a model
        that is named there counts. `settings` are further fields of `Request`, or of its
        `Sampling`: `max_tokens=500`. Messages that are left out are one of its `repairs`, of the
        rule `window`.
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
    """Say in a request what of the history is not in it; a dialect of one's own may not have it."""
    if not window.omitted or not isinstance(getattr(encoded, "repairs", None), tuple):
        return
    they = "message of the history is" if window.omitted == 1 else "messages of the history are"
    reason = f"{window.omitted} earlier {they} left out before this one: they do not fit"
    repair = model_lookups.omission(f"messages[{window.omitted_at}]", reason)
    encoded.repairs = (repair, *encoded.repairs)


def _request(settings: dict[str, Any]) -> Request:
    if "messages" in settings:
        msg = "the messages of a request are the history's"
        raise InvalidInputError(msg)
    return Request().with_settings(**settings)
