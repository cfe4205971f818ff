"""Conversations of pydantic-ai: requests and responses, in turn.

The instructions of a request are a system message of ours, where they are new; requests that
repeat them only note that they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import thaw
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Text
from dragoman.model.roles import Role
from dragoman.wire.overlay import overlay
from dragoman.wire.peers.keeping import Writing
from dragoman.wire.peers.pydantic_ai.answers import decode_answer, encode_answer
from dragoman.wire.peers.pydantic_ai.requests import (
    INSTRUCTIONS,
    JOINED,
    REQUEST,
    decode_request,
    encode_parts,
    request_fields,
)
from dragoman.wire.peers.pydantic_ai.spelling import encode_time

UNREADABLE = "dragoman_unreadable"
"""In a dump: whether it had something that no JSON can carry, such as a tool's metadata."""
_IN_FORCE = "pydantic-ai instructions facts"
"""Kept of the system message that a request's instructions became."""


def decode_messages(dumps: Iterable[Mapping[str, Any]]) -> list[Message]:
    """The messages in a dump."""
    messages: list[Message] = []
    in_force: str | None = None
    for given in dumps:
        kind = given.get("kind")
        if kind == "response":
            messages.append(decode_answer(given))
        elif kind == "request":
            decoded, in_force = _with_instructions(decode_request(given), in_force)
            messages += decoded
        else:
            msg = "a message of pydantic-ai is a request or a response"
            raise InvalidInputError(msg)
    return messages


def _with_instructions(
    messages: list[Message], in_force: str | None
) -> tuple[list[Message], str | None]:
    first, *others = messages
    fields = dict(overlay(first.extras, REQUEST))
    text = fields.get(INSTRUCTIONS)
    if not isinstance(text, str):
        return messages, in_force
    fields[INSTRUCTIONS] = True
    first = replace(first, extras={**first.extras, REQUEST: fields})
    if text == in_force:
        return [first, *others], in_force
    system = make_message(Role.SYSTEM, (Text(text),), extras={_IN_FORCE: {"in_force": True}})
    return [system, first, *others], text


def encode_messages(messages: Iterable[Message], writing: Writing) -> list[dict[str, Any]]:
    """The requests and responses for messages."""
    conversation = list(messages)
    names = {call.id: call.name for message in conversation for call in message.tool_calls}
    return _Requests(names, writing).write(conversation)


class _Requests:
    """Puts messages together to requests and responses."""

    def __init__(self, names: Mapping[str, str], writing: Writing) -> None:
        self._names = names
        self._writing = writing
        self._written: list[dict[str, Any]] = []
        self._open: list[Message] = []
        self._parts: list[Any] = []
        self._instructions: str | None = None

    def write(self, messages: list[Message]) -> list[dict[str, Any]]:
        for index, message in enumerate(messages):
            self._writing.message = index
            if message.role is Role.ASSISTANT:
                self._close()
                self._append(encode_answer(message, self._writing))
            elif _IN_FORCE in message.extras:
                self._close()
                self._instructions = message.text
            else:
                self._add(message)
            self._note_facts(message)
        self._close()
        return self._written

    def _add(self, message: Message) -> None:
        if self._open and not _belongs(message, self._open[-1]):
            self._close()
        self._parts += encode_parts(message, self._names, self._writing)
        self._open.append(message)

    def _close(self) -> None:
        if not self._open:
            return
        body = request_fields(self._open, self._writing)
        fields = overlay(self._open[0].extras, REQUEST)
        if self._instructions is not None and (
            fields.get(INSTRUCTIONS) or REQUEST not in self._open[0].extras
        ):
            body[INSTRUCTIONS] = self._instructions
        self._append({**body, "parts": self._parts})
        self._open, self._parts = [], []

    def _append(self, body: dict[str, Any]) -> None:
        if body.pop(UNREADABLE, None):
            self._writing.lose_field(
                "extras", "something in it could not be written as JSON, and was not kept"
            )
        self._written.append(thaw(body))

    def _note_facts(self, message: Message) -> None:
        if message.created_at is not None and encode_time(message.created_at) is None:
            self._writing.omit("created_at", "the time is out of range")
        if message.role is not Role.ASSISTANT:
            if message.usage is not None:
                self._writing.omit("usage", "only responses have token counts there")
            if message.finish is not None:
                self._writing.omit("finish", "only responses say why they ended there")


def _belongs(message: Message, before: Message) -> bool:
    """Whether a message goes into the same request as the one before it."""
    if REQUEST in message.extras:
        return bool(overlay(message.extras, REQUEST).get(JOINED))
    return REQUEST not in before.extras
