"""The flat list of items, read into messages; `turns` writes it.

A run of items on the assistant's side is one message; any other message is one item, and so is
each output of a tool. Where `turns`, going back, would draw the border between two items
elsewhere, a part is marked (`forms.ITEM`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.derived_ids import Identity
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Opaque, Origin
from dragoman.model.roles import Role
from dragoman.wire.call_ids import CallIds, decode_calls
from dragoman.wire.envelope import is_sealed
from dragoman.wire.openai_responses.builtin import (
    decode_server_call,
    decode_server_result,
    is_answer,
    is_call,
    is_result,
)
from dragoman.wire.openai_responses.calls import decode_call, decode_output
from dragoman.wire.openai_responses.content import opaque_item
from dragoman.wire.openai_responses.forms import NAME, ORIGIN
from dragoman.wire.openai_responses.messages import (
    SPEAKERS,
    decode_answer,
    decode_message,
    decode_odd_message,
    is_odd_message,
)
from dragoman.wire.openai_responses.reasoning import decode_reasoning
from dragoman.wire.unsealing import unsealed

ASSISTANT, TOOL, USER = Role.ASSISTANT, Role.TOOL, Role.USER
_CALLS = frozenset({"function_call", "custom_tool_call"})
_ASSISTANT_SIDE = _CALLS | {"message", "reasoning"}
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})
_FROM_THE_USER = frozenset({"mcp_approval_response", "compaction_trigger"})


def decode_items(items: Iterable[Any]) -> list[Message]:
    """The messages of a request."""
    listed = list(items)
    return decode_calls(lambda calls: _decode_listed(listed, _Reader(ORIGIN, calls)))


def _decode_listed(items: list[Any], reader: _Reader) -> list[Message]:
    for index, item in enumerate(items):
        reader.read(item, index)
    reader.close_run()
    return reader.messages


def decode_output_items(items: Iterable[Any], identity: Identity) -> tuple[AnyPart, ...]:
    """The parts of a response: all its items are one message, whose origin speaks for them."""
    reader = _Reader(None, CallIds(identity))
    for index, item in enumerate(items):
        reader.read_into_run(item, index)
    return tuple(reader.run)


def decode_output_item(
    item: Any, index: int, previous: AnyPart | None, identity: Identity
) -> list[AnyPart]:
    """The parts of one item of a response, given the part that stands before it."""
    reader = _Reader(None, CallIds(identity))
    if previous is None:
        reader.read_into_run(item, index)
        return reader.run
    reader.run.append(previous)
    reader.read_into_run(item, index)
    return reader.run[1:]


class _Reader:
    """Gathers items into messages."""

    __slots__ = ("_calls", "_has_envelopes", "_origin", "messages", "run")

    def __init__(self, origin: Origin | None, calls: CallIds) -> None:
        self.messages: list[Message] = []
        self.run: list[AnyPart] = []
        self._calls = calls
        self._has_envelopes = False  # in the run: another provider's state; see `unsealing`
        self._origin = origin

    def read(self, item: Any, index: int) -> None:
        """Take in an item of a request."""
        kind, role = (
            (item.get("type"), item.get("role")) if isinstance(item, dict) else (None, None)
        )
        if type(role) is str and (speaker := SPEAKERS.get(role)) is not None:
            is_message = kind is None or kind == "message"
            message = decode_message(item, speaker) if is_message else None
            if message is None and is_message:
                message = decode_odd_message(item)
            self._say(message or make_message(speaker, (self._opaque(item),)))
        elif is_odd_message(item) and (message := decode_odd_message(item)) is not None:
            self._say(message)
        elif type(kind) is not str or kind in _ASSISTANT_SIDE:
            self.read_into_run(item, index)
        elif kind in _OUTPUTS:
            result = decode_output(item, self._calls)
            self._say(make_message(TOOL, (result or self._opaque(item),)))
        elif is_result(kind) and is_answer(item):
            self._say(make_message(TOOL, (decode_server_result(item, self._origin),)))
        elif kind in _FROM_THE_USER:
            self._say(make_message(USER, (self._opaque(item),)))
        else:
            self.read_into_run(item, index)

    def _say(self, message: Message) -> None:
        if self.run:
            self.close_run()
        self.messages.append(message)

    def close_run(self) -> None:
        """The assistant's turn is over."""
        if self.run:
            parts = tuple(self.run)
            self.run = []
            if self._has_envelopes:
                self._has_envelopes, parts = False, unsealed(parts)
            if parts:  # or it was nothing but a carrier
                self.messages.append(make_message(ASSISTANT, parts))

    def read_into_run(self, item: Any, index: int) -> None:
        """Take in an item of the assistant's turn."""
        self._calls.at(index)
        kind = item.get("type", "message") if isinstance(item, dict) else None
        parts = self._decode(kind, item) if type(kind) is str else None
        if parts:
            self.run.extend(parts)
        else:
            self.run.append(self._opaque(item))

    def _decode(self, kind: str, item: dict[str, Any]) -> Iterable[AnyPart] | None:
        previous = self.run[-1] if self.run else None
        if kind == "message":
            return decode_answer(item, previous)
        if kind == "reasoning":
            thoughts = decode_reasoning(item, previous, self._origin)
            if thoughts and is_sealed(thoughts[0]):
                self._has_envelopes = True
            return thoughts
        if kind in _CALLS:
            call = decode_call(item, self._calls, self._origin)
            return None if call is None else (call,)
        if kind in _OUTPUTS:
            result = decode_output(item, self._calls)
            return None if result is None else (result,)
        if is_call(kind):
            return decode_server_call(item, self._origin)
        return (decode_server_result(item, self._origin),) if is_result(kind) else None

    def _opaque(self, item: Any) -> Opaque:
        return Opaque(NAME, opaque_item(item), origin=self._origin)
