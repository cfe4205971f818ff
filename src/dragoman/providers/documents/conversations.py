"""The messages of a document, as a history stores them."""

from __future__ import annotations

from dragoman.errors import InvalidInputError
from dragoman.model.messages import Message, make_message
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.roles import Role
from dragoman.providers.documents.reading import Document
from dragoman.wire.losses import Loss

ZIP = b"PK\x03\x04"
"""The first bytes of a ZIP archive, in which ChatGPT and Claude deliver their exports."""
UNPACK = (
    "the file is a ZIP archive; unpack it and import the JSON files in it (conversations.json, of"
    " an export from ChatGPT or Claude)"
)
_KEPT = ("messages", "system")
_NOTHING = Request()


def messages_of(document: Document) -> tuple[list[Message], tuple[Loss, ...]]:
    """The messages of a document, and what else it holds, which a history does not store.

    A separate system prompt becomes the first message. Raises if there are no messages.
    """
    value, losses = document.value, document.losses
    if isinstance(value, Response):
        found = [choice.message for choice in value.choices[:1]]
        if len(value.choices) > 1:
            losses += (Loss("choices[1]", "a history holds one answer; the first was imported"),)
    elif isinstance(value, Request):
        system = [make_message(Role.SYSTEM, tuple(value.system))] if value.system else []
        found = [*system, *value.messages]
        losses += _settings_of(value)
    else:
        found = list(value)
    if not found:
        msg = "it contains no messages"
        raise InvalidInputError(msg)
    return found, losses


def _settings_of(request: Request) -> tuple[Loss, ...]:
    """The settings and tools of a request."""
    names = [name for name in Request.__struct_fields__ if name not in _KEPT]
    return tuple(
        Loss(name, "a history holds messages; tools and settings were not imported")
        for name in names
        if getattr(request, name) != getattr(_NOTHING, name)
    )
