"""`Window`: the messages a history sends, and how many are omitted."""

from __future__ import annotations

from typing import Any

from dragoman.model.collection import Messages
from dragoman.model.messages import Message


class Window(Messages):
    """The messages to send to a model, and how many of the history's are omitted.

    ```python
    window = await history.window("anthropic:claude-sonnet-4-5")
    if window.omitted:
        print(f"{window.omitted} earlier messages are not sent")
    ```

    Slices and modified copies are plain `Messages`.
    """

    __slots__ = ("_omitted", "_omitted_at")

    _omitted: int
    _omitted_at: int

    @classmethod
    def showing(cls, messages: Messages, *, omitted: int = 0, omitted_at: int = 0) -> Window:
        """Wraps messages without copying them."""
        made = cls.__new__(cls)
        made._shared, made._length = messages._shared, messages._length
        made._omitted, made._omitted_at = omitted, omitted_at
        return made

    @property
    def omitted(self) -> int:
        """The number of omitted messages."""
        return self._omitted

    @property
    def omitted_at(self) -> int:
        """The index before which messages are missing; those before it were kept.

        If a marker or a summary replaces them, it is at this index.
        """
        return self._omitted_at

    def __init__(self, *messages: Message) -> None:
        super().__init__(*messages)
        self._omitted = self._omitted_at = 0

    @classmethod
    def _view(cls, shared: list[Message], length: int | None = None) -> Any:
        return Messages._view(shared, length)

    def __reduce__(self) -> tuple[Any, ...]:
        return _window, (tuple(self), self._omitted, self._omitted_at)


def _window(messages: tuple[Message, ...], omitted: int, omitted_at: int) -> Window:
    return Window.showing(Messages(*messages), omitted=omitted, omitted_at=omitted_at)
