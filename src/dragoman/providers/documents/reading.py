"""Reads documents: requests, responses and histories, in any dialect or in canonical form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dragoman.errors import InvalidInputError
from dragoman.interop.chat_exports import FORMATS, ChatExport, format_of, from_chat_export
from dragoman.interop.message_dialects import OWN, dialect_of
from dragoman.model.collection import Messages
from dragoman.model.jsontext import loads
from dragoman.providers.documents.sessions import is_session
from dragoman.wire.detection import detect, dialect_of_history
from dragoman.wire.dialect import dialect
from dragoman.wire.documents import (
    Conversation,
    is_canonical,
    is_message,
    is_response,
    read_canonical,
)
from dragoman.wire.losses import Loss

AUTO = "auto"
CANONICAL = "canonical"

NO_DOCUMENT = "a document must be a JSON object or an array of messages"
_LANGCHAIN = (
    "it looks like LangChain's messages_to_dict: load it with messages_from_dict, then use"
    " dragoman.interop.from_langchain"
)
_ONE_MESSAGE = "this is a single message; put the messages of a conversation into one array"


_NO_SESSIONS = "this is an export of stored sessions, which can't be read here"


class Document(NamedTuple):
    """A decoded document and its source dialect."""

    dialect: str
    value: Conversation
    losses: tuple[Loss, ...] = ()
    """What the document holds beside the conversation."""
    chat: ChatExport | None = None
    """The export that it was read from, with its other branches."""


class StoredMessages(NamedTuple):
    """The messages of an exported session: those of its active branch."""

    messages: Messages
    others: int = 0
    """The number of messages on other branches."""


ReadSession = Callable[[bytes], StoredMessages]
"""Reads the lines of an exported session; histories know their format, documents don't."""


class Reader:
    """Reads documents of one dialect, of our own form (`canonical`), or of any form (`auto`).

    The exports of chat applications are forms, too: `chatgpt`, `claude` and `sharegpt`.
    """

    def __init__(self, source: str = AUTO, read_session: ReadSession | None = None) -> None:
        self._source = source
        self._read_session = read_session
        self._dialect = (
            None if source in (AUTO, CANONICAL) or source in FORMATS else dialect(source)
        )

    def read(self, raw: bytes) -> Document:
        """Decode a document; raises if it is not valid."""
        if is_session(raw):
            return self._read_stored(raw)
        wire = loads(raw)
        if isinstance(wire, dict):
            return self._read_object(wire, raw)
        if isinstance(wire, list):
            return self._read_history(wire)
        raise InvalidInputError(NO_DOCUMENT)

    def _read_stored(self, raw: bytes) -> Document:
        if self._read_session is None or self._source not in (AUTO, CANONICAL):
            raise InvalidInputError(_NO_SESSIONS)
        messages, others = self._read_session(raw)
        return Document(CANONICAL, messages, _left_out(others))

    def _read_object(self, wire: dict[str, Any], raw: bytes) -> Document:
        spoken = self._dialect
        if spoken is None:
            name = None if self._source == CANONICAL else format_of(wire)
            if name is not None and self._source in (AUTO, name):
                chat = from_chat_export(wire)
                others = sum(len(branch.messages) for branch in chat.branches)
                return Document(name, chat.messages, _left_out(others), chat)
            if self._source in FORMATS:
                msg = f"this is not a conversation in the form of {self._source}"
                raise InvalidInputError(msg)
            if is_canonical(wire):
                return Document(CANONICAL, read_canonical(wire["kind"], raw))
            if self._source == CANONICAL:
                msg = "this is not a canonical document; give its dialect, or auto"
                raise InvalidInputError(msg)
            if is_message(wire):
                raise InvalidInputError(_ONE_MESSAGE)
            spoken = dialect(detect(wire))
        if is_response(wire, spoken.messages_field):
            return Document(spoken.name, spoken.decode_response(wire))
        if spoken.messages_field not in wire:
            refuse_others(wire)
        return Document(spoken.name, spoken.decode_request(wire))

    def _read_history(self, items: list[Any]) -> Document:
        if items and not any(isinstance(item, dict) for item in items):
            raise InvalidInputError(NO_DOCUMENT)
        if self._source in FORMATS:
            msg = f"this is not a conversation in the form of {self._source}"
            raise InvalidInputError(msg)
        if self._dialect is None and (self._source == CANONICAL or not _is_of_one_dialect(items)):
            return Document(CANONICAL, Messages.from_any(items))
        spoken = self._dialect or dialect(dialect_of_history(items))
        request = spoken.decode_request({spoken.messages_field: items})
        return Document(spoken.name, Messages.wrapping(request.messages))


def _left_out(others: int) -> tuple[Loss, ...]:
    """The loss of the messages on other branches than the active one."""
    if not others:
        return ()
    number = "1 message is" if others == 1 else f"{others} messages are"
    return (Loss("messages", f"{number} on other branches of the conversation; not written"),)


def _is_of_one_dialect(items: list[Any]) -> bool:
    """Whether all items are of one dialect, whose decoder keeps unknown fields.

    Raises for items in no known form: a tolerant decoder would take them for blank messages.
    """
    dialects = [dialect_of(item) if isinstance(item, dict) else None for item in items]
    found = set(dialects) - {None}
    if not found - {"openai-chat"}:  # others have items without a role, and keep unknown ones
        for index, (item, name) in enumerate(zip(items, dialects, strict=True)):
            if name is None and isinstance(item, dict) and "role" not in item:
                hint = _LANGCHAIN if {"type", "data"} <= item.keys() else "give its dialect"
                msg = f"item {index} is not a message of a known dialect; {hint}"
                raise InvalidInputError(msg)
    return OWN not in found and len(found) <= 1


def refuse_others(wire: Mapping[str, Any]) -> None:
    """Raise for a document that is neither a request nor a response."""
    if isinstance(wire.get("error"), (dict, str)):
        msg = "this is a provider's error, neither a request nor a response"
        raise InvalidInputError(msg)
    if is_message(wire):
        raise InvalidInputError(_ONE_MESSAGE)
