"""What was changed on the way out and must be undone on the way back."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCall


class Context:
    """Of one request: the names that its tools really have, and how its stream is going to end."""

    __slots__ = ("ends_with_done", "names")

    def __init__(self, names: Mapping[str, str] = EMPTY, *, ends_with_done: bool = True) -> None:
        self.names = names
        """By the alias that the target was told."""
        self.ends_with_done = ends_with_done
        """Whether a Chat host's stream ends with `[DONE]`."""

    def restored(self, response: Response) -> Response:
        """A response in which tools are called by their own names again."""
        if not self.names or not any(choice.message.tool_calls for choice in response.choices):
            return response
        choices = tuple(
            choice.replace(message=self._restored(choice.message)) for choice in response.choices
        )
        return response.replace(choices=choices)

    def _restored(self, message: Message) -> Message:
        return message.replace(parts=tuple(self._part(part) for part in message.parts))

    def _part(self, part: AnyPart) -> AnyPart:
        if isinstance(part, ToolCall) and part.name in self.names:
            return part.replace(name=self.names[part.name])
        return part

    def __repr__(self) -> str:
        return f"Context({len(self.names)} names)"


NOTHING = Context()
"""Nothing to undo."""
