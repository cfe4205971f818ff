"""What was changed on the way out and must be undone on the way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dragoman.errors import InvalidInputError
from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import dumps, loads
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.requests import Request
from dragoman.model.responses import Choice, Response
from dragoman.model.tools import ToolCall
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.text_tools import as_text

Undo = Callable[[Any], Any]
"""Takes a value that fits the schema which was sent to one that fits the original."""
_WHOLE = frozenset({FinishReason.STOP, FinishReason.TOOL_CALLS})


class CallForm(NamedTuple):
    """How a call has to look for who asked: its tool's own name, and what its dialect adds."""

    name: str
    extras: Mapping[str, Any] = EMPTY


class Context:
    """Of one request: its tools' own names and schemas, and how its answer is going to end."""

    __slots__ = ("calls", "ends_with_done", "limit", "names", "output", "request", "undos")

    def __init__(
        self,
        names: Mapping[str, str] = EMPTY,
        *,
        calls: Mapping[str, CallForm] = EMPTY,
        undos: Mapping[str, Undo] = EMPTY,
        output: Undo | None = None,
        ends_with_done: bool = True,
        limit: int | None = None,
        request: Request | None = None,
    ) -> None:
        self.names = names
        """By the alias that the target was told."""
        self.calls = calls
        """By the name that `names` gives back: calls that have another form in the request."""
        self.undos = undos
        """By the name that the target was told: what the tool's arguments have to go through."""
        self.output = output
        """What the answer has to go through, where its form was asked for by another schema."""
        self.ends_with_done = ends_with_done
        """Whether a Chat host's stream ends with `[DONE]`."""
        self.limit = limit
        """The most tokens to write, for a host that does not say when it cuts off there."""
        self.request = request
        """What a client asked for, where an answer is written for it."""

    @property
    def is_idle(self) -> bool:
        """Whether a response stays as it is."""
        is_same = not (self.names or self.undos or self.calls) and self.output is None
        return is_same and self.limit is None

    def restored(self, response: Response) -> Response:
        """A response in the request's own terms: names of tools, arguments, the answer's form."""
        if self.is_idle:
            return response
        if self.limit is not None:
            response = self._finished(response)
        if self.output is None and not any(each.message.tool_calls for each in response.choices):
            return response
        choices = tuple(
            choice.replace(message=self._restored(choice.message)) for choice in response.choices
        )
        return response.replace(choices=choices)

    def _restored(self, message: Message) -> Message:
        return message.replace_unchecked(parts=tuple(self.part(part) for part in message.parts))

    def _finished(self, response: Response) -> Response:
        choices: list[Choice] = []
        for choice in response.choices:
            finish = self.finish(choice.finish, response.usage)
            message = choice.message.replace(finish=finish)
            choices.append(choice.replace(message=message, finish=finish))
        return response.replace(choices=tuple(choices))

    def finish(self, said: FinishReason | None, usage: Usage | None) -> FinishReason | None:
        """Why it ended. Who has written all that may be written is taken to be cut off.

        Calls among it may be unfinished as well; of an answer that was complete at its very last
        token the same is said, which nobody can tell apart.
        """
        if self.limit is None or usage is None or said not in _WHOLE:
            return said
        return FinishReason.LENGTH if usage.total_output >= self.limit else said

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
        if (form := self.form(call.name)) is not None and call.kind == "function":
            changes |= {"name": form.name, "extras": {**call.extras, **form.extras}}
        undo = self.undos.get(call.name)
        if undo is as_text and call.kind == "function":
            changes |= {"kind": "custom", "raw": _text_in(call), "input": None}
        elif undo is not None and call.kind == "function" and call.has_valid_arguments:
            arguments = undo(call.arguments)
            if isinstance(arguments, Mapping) and arguments != call.arguments:
                # The text is the model's own: it says what was meant in the target's terms.
                changes |= {"raw": None, "input": arguments}
        return call.replace_unchecked(**changes) if changes else call

    def takes_text(self, told: str) -> bool:
        """Whether a tool takes text for who asked, by the name that the target was told."""
        return self.undos.get(told) is as_text

    def form(self, told: str) -> CallForm | None:
        """How calls of the tool look for who asked, by the name that the target was told."""
        return self.calls.get(self.names.get(told, told)) if self.calls else None

    def name(self, told: str) -> str:
        """The name that a tool has for who asked."""
        form = self.form(told)
        return self.names.get(told, told) if form is None else form.name

    def __repr__(self) -> str:
        sizes = [f"{len(self.names)} names", f"{len(self.undos)} schemas"]
        return f"Context({', '.join([*sizes, 'output'] if self.output else sizes)})"


def _text_in(call: ToolCall) -> str:
    """What the model says to a tool that takes text, whatever it made of its one argument."""
    text = as_text(call.arguments) if call.has_valid_arguments else None
    return text if isinstance(text, str) else call.raw_arguments


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
