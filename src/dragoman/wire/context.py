"""`Context`: what encoding a request changed and decoding its response must undo."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from dragoman.errors import InvalidInputError
from dragoman.model.content import AnyPart
from dragoman.model.derived_ids import Identity, derived_call_id, response_identity
from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import loads
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.requests import Request
from dragoman.model.responses import Choice, Response
from dragoman.model.tools import ToolCall, make_call
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.text_tools import as_text

if TYPE_CHECKING:
    from dragoman.wire.fronts import StateFields
    from dragoman.wire.schemas.projection import Undos
    from dragoman.wire.schemas.text_undo import TextUndos

Undo = Callable[[Any], Any]
"""Converts a value that fits the schema as sent into one that fits the original schema."""
_WHOLE = frozenset({FinishReason.STOP, FinishReason.TOOL_CALLS})


class CallForm(NamedTuple):
    """How the caller expects a call to look: its tool's original name, and dialect extras."""

    name: str
    extras: Mapping[str, Any] = EMPTY


class Context:
    """What one request changed: tool names, schemas, and how its response is expected to end."""

    __slots__ = ("calls", "ends_with_done", "forced", "limit", "names", "output", "request",
                 "state_fields", "undos")  # fmt: skip

    def __init__(  # noqa: PLR0913 - all that encoding may change, by keyword
        self,
        names: Mapping[str, str] = EMPTY,
        *,
        calls: Mapping[str, CallForm] = EMPTY,
        undos: Mapping[str, Undo] = EMPTY,
        output: Undos | None = None,
        forced: frozenset[str] = frozenset(),
        ends_with_done: bool = True,
        limit: int | None = None,
        request: Request | None = None,
        state_fields: StateFields | None = None,
    ) -> None:
        self.names = names
        """Original tool names, by the alias sent to the target."""
        self.calls = calls
        """Calls that have another form in the request, by original tool name."""
        self.undos = undos
        """Conversions for tool arguments, by the name sent to the target."""
        self.output = output
        """Conversion for structured output whose schema was changed."""
        self.forced = forced
        """The tools, as sent, one of which a text calls: a schema stood for the tool choice."""
        self.ends_with_done = ends_with_done
        """Whether a Chat host's stream ends with `[DONE]`."""
        self.limit = limit
        """The output token limit, for a host that doesn't report when it truncates there."""
        self.request = request
        """The client's request, when a response is encoded for a client."""
        self.state_fields = state_fields
        """Where this client keeps thinking and state; None: where its dialect's clients do."""

    @property
    def is_idle(self) -> bool:
        """Whether responses need no changes."""
        is_same = not (self.names or self.undos or self.calls) and self.output is None
        return is_same and self.limit is None and not self.forced

    def restored(self, response: Response) -> Response:
        """A response with the request's own tool names, argument schemas and output schema."""
        if self.is_idle:
            return response
        if self.limit is not None:
            response = self._finished(response)
        if self.forced:
            identity = identity_of(response)
            choices = tuple(self._called(choice, identity) for choice in response.choices)
            response = response.replace(choices=choices)
        if self.output is None and not any(each.message.tool_calls for each in response.choices):
            return response
        choices = tuple(
            choice.replace(message=self._restored(choice.message)) for choice in response.choices
        )
        return response.replace(choices=choices)

    def _called(self, choice: Choice, identity: Identity) -> Choice:
        """The choice, with a call in place of the text that stands for it."""
        message = choice.message
        if message.tool_calls:
            return choice
        parts = tuple(self.call_in(part, identity) or part for part in message.parts)
        if all(now is part for now, part in zip(parts, message.parts, strict=True)):
            return choice
        finish = self.finish_of_call(choice.finish)
        return choice.replace(message=message.replace(parts=parts, finish=finish), finish=finish)

    def call_in(self, part: AnyPart, identity: Identity) -> ToolCall | None:
        """The call for which a text stands; None if it is just a text, or was cut off."""
        if type(part) is not Text or not self.forced:
            return None
        try:
            said = loads(part.text)
        except InvalidInputError:
            return None
        name = said.get("name") if isinstance(said, dict) else None
        arguments = said.get("arguments") if name in self.forced else None
        if not isinstance(name, str) or not isinstance(arguments, dict):
            return None
        id = derived_call_id(identity, (0, 0), (name, arguments))
        return make_call(id, name, None, arguments, origin=part.origin)

    @staticmethod
    def finish_of_call(finish: FinishReason | None) -> FinishReason | None:
        """The finish reason of an answer whose text stands for a call."""
        return FinishReason.TOOL_CALLS if finish is FinishReason.STOP else finish

    def _restored(self, message: Message) -> Message:
        return message.replace_unchecked(parts=tuple(self.part(part) for part in message.parts))

    def _finished(self, response: Response) -> Response:
        choices: list[Choice] = []
        for choice in response.choices:
            finish = self.finish(choice.finish, response.usage)
            message = choice.message.replace(finish=finish)
            choices.append(choice.replace(message=message, finish=finish))
        return response.replace(choices=tuple(choices))

    def finish(self, reported: FinishReason | None, usage: Usage | None) -> FinishReason | None:
        """The finish reason; a response that used the whole token limit counts as truncated.

        Its last call may be incomplete as well. A response that was complete at exactly its last
        token is reported as truncated too: the two can't be told apart.
        """
        if self.limit is None or usage is None or reported not in _WHOLE:
            return reported
        return FinishReason.LENGTH if usage.total_output >= self.limit else reported

    def part(self, part: AnyPart) -> AnyPart:
        """A complete part with the request's own names and schemas."""
        if isinstance(part, ToolCall):
            return self._call(part)
        if self.output is not None and isinstance(part, Text):
            text = edited(part.text, self.output.of_text())
            return part if text == part.text else part.replace(text=text)
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
        elif undo is not None and call.kind == "function" and call.raw is not None:
            editor = self.editor(call.name)
            raw = call.raw if editor is None else edited(call.raw, editor)
            if raw != call.raw:
                changes |= {"raw": raw, "input": None}
        elif undo is not None and call.kind == "function" and call.has_valid_arguments:
            arguments = undo(call.arguments)
            if isinstance(arguments, Mapping) and arguments != call.arguments:
                changes |= {"raw": None, "input": arguments}
        return call.replace_unchecked(**changes) if changes else call

    def takes_text(self, sent_name: str) -> bool:
        """Whether the caller's tool takes free text, by the name sent to the target."""
        return self.undos.get(sent_name) is as_text

    def editor(self, sent_name: str) -> TextUndos | None:
        """What restores the arguments of a call while they stream; None if that takes them all."""
        make = getattr(self.undos.get(sent_name), "of_text", None)  # `as_text` has none
        editor: TextUndos | None = None if make is None else make(takes_objects=True)
        return editor

    def form(self, sent_name: str) -> CallForm | None:
        """How the caller expects calls of a tool to look, by the name sent to the target."""
        return self.calls.get(self.names.get(sent_name, sent_name)) if self.calls else None

    def name(self, sent_name: str) -> str:
        """The caller's name for a tool."""
        form = self.form(sent_name)
        return self.names.get(sent_name, sent_name) if form is None else form.name

    def __repr__(self) -> str:
        sizes = [f"{len(self.names)} names", f"{len(self.undos)} schemas"]
        return f"Context({', '.join([*sizes, 'output'] if self.output else sizes)})"


def identity_of(response: Response) -> Identity:
    """What distinguishes the calls of a response from those of others."""
    return response_identity(response.id, response.created_at, response.model)


def _text_in(call: ToolCall) -> str:
    """The text for a free-text tool, even if the model's single argument is malformed."""
    text = as_text(call.arguments) if call.has_valid_arguments else None
    return text if isinstance(text, str) else call.raw_arguments


def edited(text: str, editor: TextUndos) -> str:
    """A whole text, edited."""
    return editor.feed(text) + editor.close()


NOTHING = Context()
"""Nothing to undo."""
