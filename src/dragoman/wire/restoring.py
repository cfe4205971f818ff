"""Restores the request's own names and schemas in a stream.

Names are restored immediately. Arguments and structured output whose schema was changed are edited
as they come, with little delay (see `schemas.text_undo`). What stands for something else (a text
for a forced call, arguments for a free text) is held back until it is complete.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from dragoman.model import events
from dragoman.model.content import AnyPart
from dragoman.model.events import PartDelta
from dragoman.model.parts import Text
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCall, ToolCallDelta, make_call
from dragoman.wire.context import Context, identity_of
from dragoman.wire.stream_encoding import EventHandler
from dragoman.wire.streams import StreamDecoder

if TYPE_CHECKING:
    from dragoman.wire.schemas.text_undo import TextUndos

CallKind = Literal["function", "custom"]


def restoring(decoder: StreamDecoder, context: Context) -> StreamDecoder:
    """Wrap a decoder so that it restores the request's own names and schemas."""
    return decoder if context.is_idle else RestoringDecoder(decoder, context)


class _Edited:
    """A part whose text is restored as it comes; without an editor, when it is complete."""

    __slots__ = ("_editor", "_told", "part", "pieces")

    def __init__(self, part: ToolCall | Text, editor: TextUndos | None) -> None:
        self.part, self._editor = part, editor
        self.pieces: list[str] = []
        """What was held back."""
        self._told: list[str] = []

    def feed(self, piece: str | None) -> str:
        """The restored text that is certain with this piece."""
        if self._editor is None:
            self.pieces += [piece] if piece else []
            return ""
        told = self._editor.feed(piece) if piece else ""
        if told:
            self._told.append(told)
        return told

    def rest(self, context: Context, final: AnyPart | None = None) -> str:
        """The remaining text of the part, whose restored final form may be known."""
        if final is not None:
            told, whole = "".join(self._told), _text_of(final)
            return whole[len(told) :] if whole.startswith(told) else ""
        if self._editor is not None:
            return self._editor.close()
        whole = "".join(self.pieces)
        if isinstance(self.part, ToolCall):
            return _text_of(context.part(self.part.replace_unchecked(raw=whole, input=None)))
        return _text_of(context.part(Text(whole)))


class _EditedCall:
    """A call without a part of its own: it is complete when its choice is."""

    __slots__ = ("edited", "name")

    def __init__(self) -> None:
        self.name = ""
        self.edited: _Edited | None = None

    def take_name(self, name: str) -> None:
        """Take the name, a repetition of it, or another chunk of it (W8)."""
        if name != self.name and self.edited is None:
            self.name += name

    def feed(self, piece: str, context: Context) -> str:
        """The restored arguments that are certain with this piece."""
        if self.edited is None:
            call = make_call("", self.name, raw="")
            self.edited = _Edited(call, context.editor(self.name))
        return self.edited.feed(piece)


def _text_of(part: AnyPart) -> str:
    if isinstance(part, ToolCall):
        return part.raw_arguments
    return part.text if isinstance(part, Text) else ""


class RestoringDecoder(EventHandler):
    """A stream decoder that restores tool names, argument schemas and output schemas."""

    def __init__(self, decoder: StreamDecoder, context: Context) -> None:
        self._decoder = decoder
        self._context = context
        self._parts: dict[tuple[int, int], _Edited] = {}
        """By choice and index."""
        self._calls: dict[tuple[int, int | None], _EditedCall] = {}
        """Calls without a part, by choice and index."""
        self._has_called = False

    @property
    def response(self) -> Response:
        """The response so far."""
        return self._context.restored(self._decoder.response)

    @property
    def is_complete(self) -> bool:
        """Whether the provider signalled the end of the response."""
        return self._decoder.is_complete

    def feed(self, data: bytes) -> list[events.Event]:
        """The events completed by these bytes."""
        return self._restored(self._decoder.feed(data))

    def close(self) -> list[events.Event]:
        """The remaining events when the stream ends; truncated parts are emitted as received."""
        return [*self._restored(self._decoder.close()), *self._released()]

    def _restored(self, told: Iterable[events.Event]) -> list[events.Event]:
        restored: list[events.Event] = []
        for event in told:
            if type(event) is PartDelta and not self._parts:  # the usual case: nothing is held back
                restored.append(event)
                continue
            restore = self._handlers.get(type(event))
            if restore is None:
                restored.append(event)
            else:
                restored += restore(self, event)
        return restored

    # --- event handlers

    def _part_start(self, event: events.PartStart) -> list[events.Event]:
        part, key = event.part, (event.choice, event.index)
        if isinstance(part, Text):
            if self._context.forced:
                self._parts[key] = held = _Edited(part, None)
                held.feed(part.text)
                return []
            if self._context.output is None:
                return [event]
            self._parts[key] = held = _Edited(part, self._context.output.of_text())
            begun = held.feed(part.text)
            return [event.replace(part=part.replace(text=begun)) if part.text else event]
        if not isinstance(part, ToolCall):
            return [event]
        if part.name not in self._context.undos or part.input:  # complete already: Gemini, Ollama
            return [event.replace(part=self._context.part(part))]
        self._parts[key] = held = _Edited(part, self._context.editor(part.name))
        raw = held.feed(part.raw)
        form, takes_text = self._context.form(part.name), self._context.takes_text(part.name)
        call = part.replace_unchecked(
            name=self._context.name(part.name),
            kind="custom" if takes_text else part.kind,
            raw=None if part.raw is None and not takes_text else raw,
            input=None if takes_text else part.input,
            extras=part.extras if form is None else {**part.extras, **form.extras},
        )
        return [event.replace(part=call)]

    def _part_delta(self, event: events.PartDelta) -> list[events.Event]:
        held = self._parts.get((event.choice, event.index))
        if held is None:
            return [event]
        text = held.feed(event.text) or None
        if text is not None and text == event.text:
            return [event]
        says_more = event.signature or event.data or event.citations or event.extras
        return [event.replace(text=text)] if text or says_more else []

    def _part_stop(self, event: events.PartStop) -> list[events.Event]:
        final = event.part if event.part is None else self._context.part(event.part)
        if final is not event.part:
            event = event.replace(part=final)
        held = self._parts.pop((event.choice, event.index), None)
        if held is None:
            return [event]
        if self._context.forced and isinstance(held.part, Text):
            return [*self._called(event.index, event.choice, held), event.replace(part=None)]
        return [*_grown(event.index, event.choice, held.rest(self._context, final)), event]

    def _tool_call_delta(self, event: ToolCallDelta) -> list[events.Event]:
        key = (event.choice, event.index)
        held = self._calls.get(key)
        if held is None:
            held = self._calls[key] = _EditedCall()
        if event.name:
            held.take_name(event.name)
        changes: dict[str, Any] = {}
        if event.name and (name := self._context.name(event.name)) != event.name:
            changes["name"] = name
        form = self._context.form(event.name) if event.name else None
        if form is not None and event.kind == "function":
            changes["extras"] = {**event.extras, **form.extras}
        if event.kind == "function" and self._context.takes_text(held.name):
            changes["kind"] = "custom"
        if event.arguments_delta and held.name in self._context.undos:
            text = held.feed(event.arguments_delta, self._context) or None
            if text is None and not (event.id or event.name or event.signature or event.extras):
                return []
            if text != event.arguments_delta:
                changes["arguments_delta"] = text
        return [event.replace(**changes) if changes else event]

    def _called(self, index: int, choice: int, held: _Edited) -> list[events.Event]:
        """A text that was held back, as the call for which it stands."""
        text = held.part.replace_unchecked(text="".join(held.pieces))
        call = self._context.call_in(text, identity_of(self._decoder.response))
        if call is None:
            return [events.PartStart(index, text, choice)] if held.pieces else []
        self._has_called = True
        return [events.PartStart(index, self._context.part(call), choice)]

    def _choice_finish(self, event: events.ChoiceFinish) -> list[events.Event]:
        released = self._released_forced(event.choice)
        if self._has_called:
            event = event.replace(finish=self._context.finish_of_call(event.finish))
        if self._context.limit is not None:
            finish = self._context.finish(event.finish, self._decoder.response.usage)
            event = event if finish in {None, event.finish} else event.replace(finish=finish)
        return [*released, *self._released_calls(event.choice), event]

    def _response_end(self, event: events.ResponseEnd) -> list[events.Event]:
        return [*self._released(), event]

    # --- held-back events

    def _released_forced(self, choice: int) -> list[events.Event]:
        """The texts of a choice that may stand for a call: they precede its finish."""
        if not self._context.forced:
            return []
        keys = [key for key, held in self._parts.items() if isinstance(held.part, Text)]
        released: list[events.Event] = []
        for key in [key for key in keys if key[0] == choice]:
            released += self._called(key[1], choice, self._parts.pop(key))
        return released

    def _released(self) -> list[events.Event]:
        """Everything still held back: parts that were never stopped, and calls."""
        released: list[events.Event] = []
        for choice in dict.fromkeys(choice for choice, _ in self._parts):
            released += self._released_forced(choice)
        parts, self._parts = self._parts, {}
        for (choice, index), held in parts.items():
            released += _grown(index, choice, held.rest(self._context))
        for choice in dict.fromkeys(choice for choice, _ in self._calls):
            released += self._released_calls(choice)
        return released

    def _released_calls(self, choice: int) -> list[events.Event]:
        released: list[events.Event] = []
        for key in [key for key in self._calls if key[0] == choice]:
            held = self._calls.pop(key)
            text = "" if held.edited is None else held.edited.rest(self._context)
            if text:
                is_text = self._context.takes_text(held.name)
                kind: CallKind = "custom" if is_text else "function"
                released.append(ToolCallDelta(key[1], None, None, text, choice, kind))
        return released


def _grown(index: int, choice: int, text: str) -> list[events.Event]:
    return [events.PartDelta(index, text, choice=choice)] if text else []
