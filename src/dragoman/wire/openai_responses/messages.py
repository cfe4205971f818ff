"""Message items: what a user, the system, a developer or the assistant says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Opaque, Part, Refusal, Text
from dragoman.model.roles import Role
from dragoman.wire.openai_responses.content import (
    decode_answer_parts,
    decode_inputs,
    is_unknown_part,
)
from dragoman.wire.openai_responses.forms import (
    NAME,
    ORIGIN,
    decode_form,
    decode_id,
    formed,
    item_form,
)
from dragoman.wire.overlay import reshaped
from dragoman.wire.tolerance import Form, readable_message, with_shapes

SPEAKERS = {"user": Role.USER, "system": Role.SYSTEM, "developer": Role.DEVELOPER}
_FORM = Form(NAME, {word: word for word in SPEAKERS})
_SPEAKER_NAMES = {role: name for name, role in SPEAKERS.items()}
_WITH_ID: Mapping[str, Any] = {"type": "message", "status": "completed"}


def _usual(item_id: str | None) -> Mapping[str, Any]:
    return EMPTY if item_id is None else _WITH_ID


def decode_message(item: dict[str, Any], speaker: Role) -> Message | None:
    """What somebody says to the model; None where it is malformed."""
    content = item.get("content")
    if type(content) is str and len(item) == 2:  # noqa: PLR2004 - role and content: most are this
        return make_message(speaker, (Text(content),))
    optional = {key: item[key] for key in item if key not in {"role", "content"}}
    # The first part carries the item's id; where there is none, the message's overlay does.
    item_id = None if content == [] else decode_id(item, optional)
    if type(content) is str:
        parts: tuple[AnyPart, ...] = (Text(content, item_id=item_id),)
    elif isinstance(content, list):
        parts = decode_inputs(content, item_id)
    else:
        return None
    extras = decode_form(optional, _usual(item_id))
    # One without parts came without: nothing was taken out of it.
    return make_message(speaker, parts, extras=extras, origin=None if parts else ORIGIN)


def is_odd_message(item: Any) -> bool:
    """Whether an item is a message by somebody whom nobody knows, or a bare text."""
    if not isinstance(item, dict):
        return type(item) is str
    is_message = item.get("type") in (None, "message") and "content" in item
    return is_message and item.get("role") != "assistant"


def decode_odd_message(item: Any) -> Message | None:
    """What it says, as a message of whoever is most likely to have said it."""
    made, shapes = readable_message(item, _FORM)
    message = decode_message(made, SPEAKERS[made["role"]])
    return None if message is None else with_shapes(message, NAME, shapes)


def encode_message(
    role: Role, content: str | list[Any], item_id: str | None, extras: Mapping[str, Any]
) -> dict[str, Any]:
    """The item of what somebody says. A tool's words outside a result are the user's."""
    if isinstance(content, list) and len(content) == 1 and _is_plain(content[0], "input_text"):
        content = content[0]["text"]
    body: dict[str, Any] = {"role": _SPEAKER_NAMES.get(role, "user"), "content": content}
    if item_id is not None:
        body["id"] = item_id
    formed(body, extras, _usual(item_id))
    return reshaped(body, extras, NAME)


def decode_answer(item: dict[str, Any], previous: Part | None) -> list[AnyPart] | None:
    """What the assistant says; None where it is malformed, or says nothing at all."""
    if item.get("role") != "assistant":
        return None
    content = item.get("content")
    if type(content) is str and len(item) == 2:  # noqa: PLR2004 - as above
        return [Text(content)]
    optional = {key: item[key] for key in item if key not in {"role", "content"}}
    if type(content) is str:
        content = [{"type": "output_text", "text": content}]
    elif not isinstance(content, list):
        return None
    item_id = decode_id(item, optional)
    is_glued = item_id is not None and previous is not None and previous.item_id == item_id
    told = optional if is_glued or optional != _usual(item_id) else None
    return decode_answer_parts(content, item_id, told)


def encode_answer(first: Part, content: list[Any], item_id: str | None) -> dict[str, Any]:
    """The item of what the assistant says, beginning with this part."""
    form = item_form(first)
    body: dict[str, Any] = {"role": "assistant", "content": content}
    if item_id is not None:
        body["id"] = item_id
    elif len(content) == 1 and _is_plain(content[0], "output_text"):
        body["content"] = content[0]["text"]
    body.update(_usual(item_id) if form is None else form)
    return body


def typed(item: dict[str, Any]) -> dict[str, Any]:
    """The item, which says that it is a message."""
    return {"type": "message", **item}


def _is_plain(wire: Any, own_type: str) -> bool:
    """Whether an encoded part may be written as a bare string."""
    return (
        isinstance(wire, dict)
        and len(wire) == 2  # noqa: PLR2004 - type and text
        and wire.get("type") == own_type
        and type(wire.get("text")) is str
    )


def is_content(part: Part) -> bool:
    """Whether a part belongs into the content of an assistant's message item."""
    if isinstance(part, Opaque):
        return part.dialect == NAME and is_unknown_part(part.payload)
    return isinstance(part, (Text, Refusal))
