"""What was changed on the way out and must be undone on the way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import dumps, loads
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCall

Undo = Callable[[Any], Any]
"""Takes a value that fits the schema which was sent to one that fits the original."""


class Context:
    """Of one request: its tools' own names and schemas, and how its stream is going to end."""

    __slots__ = ("ends_with_done", "names", "output", "request", "undos")

    def __init__(
        self,
        names: Mapping[str, str] = EMPTY,
        *,
        undos: Mapping[str, Undo] = EMPTY,
        output: Undo | None = None,
        ends_with_done: bool = True,
        request: Request | None = None,
    ) -> None:
        self.names = names
        """By the alias that the target was told."""
        self.undos = undos
        """By the name that the target was told: what the tool's arguments have to go through."""
        self.output = output
        """What the answer has to go through, where its form was asked for by another schema."""
        self.ends_with_done = ends_with_done
        """Whether a Chat host's stream ends with `[DONE]`."""
        self.request = request
        """What a client asked for, where an answer is written for it."""

    @property
    def is_idle(self) -> bool:
        """Whether a response stays as it is."""
        return not self.names and not self.undos and self.output is None

    def restored(self, response: Response) -> Response:
        """A response in the request's own terms: names of tools, arguments, the answer's form."""
        if self.is_idle:
            return response
        if self.output is None and not any(each.message.tool_calls for each in response.choices):
            return response
        choices = tuple(
            choice.replace(message=self._restored(choice.message)) for choice in response.choices
        )
        return response.replace(choices=choices)

    def _restored(self, message: Message) -> Message:
        return message.replace(parts=tuple(self.part(part) for part in message.parts))

    def part(self, part: AnyPart) -> AnyPart:
        """A whole part in the request's own terms."""
        if isinstance(part, ToolCall):
            return self._call(part)
        if self.output is not None and isinstance(part, Text):
            text = undone(part.text, self.output)
            return part if text is None else part.replace(text=text)
        return part

    def _call(self, call: ToolCall) -> ToolCall:
        changes: dict[str, Any] = {}
        if call.name in self.names:
            changes["name"] = self.names[call.name]
        undo = self.undos.get(call.name)
        if undo is not None and call.kind == "function" and call.has_valid_arguments:
            arguments = undo(call.arguments)
            if isinstance(arguments, Mapping) and arguments != call.arguments:
                # The text is the model's own: it says what was meant in the target's terms.
                changes |= {"raw": None, "input": arguments}
        return call.replace(**changes) if changes else call

    def __repr__(self) -> str:
        sizes = [f"{len(self.names)} names", f"{len(self.undos)} schemas"]
        return f"Context({', '.join([*sizes, 'output'] if self.output else sizes)})"


def undone(text: str, undo: Undo) -> str | None:
    """A JSON text in the original's terms; None where it says the same there, or is no JSON."""
    try:
        value = loads(text)
    except InvalidInputError:
        return None
    restored = undo(value)
    return None if restored == value else dumps(restored).decode("utf-8")


NOTHING = Context()
"""Nothing to undo."""
