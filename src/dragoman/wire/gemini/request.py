"""Requests to `generateContent` and `streamGenerateContent`, and their contents."""

from __future__ import annotations

from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY, FrozenDict
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Text
from dragoman.model.requests import BLANK, Request
from dragoman.model.roles import Role
from dragoman.model.tools import ToolResult
from dragoman.wire.call_ids import CallIds, decode_calls
from dragoman.wire.dialect import Body
from dragoman.wire.encoded import Encoded
from dragoman.wire.gemini.dialect import (
    NAME,
    ORIGIN,
    TARGET,
    Writing,
    bare_model,
    decode_path,
    encode_path,
)
from dragoman.wire.gemini.settings import SETTINGS, decode_settings, encode_settings
from dragoman.wire.gemini.tables import decode_parts, encode_parts, wire_id
from dragoman.wire.gemini.tools import encode_tools, take_tools
from dragoman.wire.json_values import is_list, is_object, parsed, want
from dragoman.wire.overlay import (
    Overlay,
    original_value,
    overlay_keys,
    with_guesses,
    with_overlay,
)
from dragoman.wire.overlay_edits import with_digests, without_edited
from dragoman.wire.reading import Reading
from dragoman.wire.target import Target
from dragoman.wire.tolerance import Form, plain_text, readable_answer, readable_message
from dragoman.wire.unsealing import unsealed_messages

# --- contents, the API's messages

_USER, _ASSISTANT, _TOOL = Role.USER, Role.ASSISTANT, Role.TOOL
_ROLES = {"user": _USER, "model": _ASSISTANT}
# Not documented, or no longer; restored unchanged.
_OTHER_ROLES = {
    "function": _TOOL,
    "tool": _TOOL,
    "assistant": _ASSISTANT,
    "system": Role.SYSTEM,
    "developer": Role.DEVELOPER,
}

FORM = Form(
    NAME,
    {"user": "user", "assistant": "model"},
    content="parts",
    kinds=(list, dict, type(None)),
    said=lambda text: [{"text": text}],
)
"""The shape of contents in this dialect."""

Content = tuple[Role, tuple[AnyPart, ...], FrozenDict]
"""Role, parts and extras of a message."""


def decode_content(wire: Any, absent_role: Role, reading: Reading) -> Content:
    """Decode a content."""
    if not is_object(wire) or type(parts := wire.get("parts")) not in FORM.kinds:
        return _decode_odd_content(wire, absent_role, reading)
    role = wire.get("role")
    known = _ROLES.get(role) if type(role) is str else None
    if known is not None and len(wire) == 2 and type(parts) is list and parts:  # noqa: PLR2004 - role and parts
        extras = EMPTY
    else:
        kept = Overlay(NAME)
        parts = _irregular_parts(wire, kept)
        if known is None:
            known = _irregular_role(wire, kept, absent_role)
        kept.fields.update((key, wire[key]) for key in wire if key not in {"role", "parts"})
        extras = kept.extras()
    decoded = decode_parts(parts, reading)
    is_answer = known is _USER and decoded and type(decoded[0]) is ToolResult
    if is_answer and all(type(part) is ToolResult for part in decoded):
        known = _TOOL
    return known, decoded, extras


def _decode_odd_content(wire: Any, absent_role: Role, reading: Reading) -> Content:
    if is_object(wire):
        made, guesses = readable_answer(wire, FORM)
    else:
        made, guesses = readable_message(wire, FORM, absent_role.value)
    role, parts, extras = decode_content(made, absent_role, reading)
    return role, parts, with_guesses(extras, NAME, guesses)


def _irregular_parts(wire: dict[str, Any], kept: Overlay) -> list[Any]:
    parts = wire.get("parts")
    if is_object(parts):
        kept.single("parts")
        return [parts]
    if parts:
        return list(parts)
    if "parts" in wire:
        kept.fields["parts"] = parts
    return []


def _irregular_role(wire: dict[str, Any], kept: Overlay, absent: Role) -> Role:
    if "role" not in wire:
        kept.absent(("role",), _wire_role(absent))
        return absent
    name = wire["role"]
    role = _OTHER_ROLES.get(name) if type(name) is str else None
    if role is None:
        kept.guess(("role",), _wire_role(absent), name)
        return absent
    kept.value(("role",), _wire_role(role), name)
    return role


def _wire_role(role: Role) -> str:
    return "model" if role is _ASSISTANT else "user"


def is_instruction(message: Message) -> bool:
    """Whether a message goes into the system prompt: contents have no system role (W75).

    One received as a content, against the documentation, is restored as one.
    """
    if not message.role.is_system:
        return False
    spelled_role = str(original_value(message.extras, NAME, "role"))
    return _OTHER_ROLES.get(spelled_role) is not message.role


_SPEAKERS = (_USER, _ASSISTANT)
_OWN_EXTRAS = overlay_keys(NAME)


def _encode_plain(message: Message) -> dict[str, Any] | None:
    """Encode a message that is only a text, as most are; else None."""
    extras = message.extras
    only = message.parts[0] if len(message.parts) == 1 else None
    if type(only) is not Text or message.name is not None or message.role not in _SPEAKERS:
        return None
    if only.citations or only.extras is not EMPTY or only.signature is not None:
        return None
    if extras is not EMPTY and not _OWN_EXTRAS.isdisjoint(extras):
        return None
    return {"role": _wire_role(message.role), "parts": [{"text": only.text}]}


def encode_content(message: Message, index: int, writing: Writing) -> Any:
    """Encode a message as a content; without parts, the content has none either."""
    writing.origin = message.origin
    parts = encode_parts(message.parts, index, writing)
    if len(parts) > 1 and type(message.parts[0]) is ToolResult:
        _in_call_order(parts, message.parts, writing)
    role = _wire_role(message.role)
    body: dict[str, Any] = {"role": role, "parts": parts} if parts else {"role": role}
    if not message.extras:
        return body
    body = with_overlay(body, message.extras, NAME)
    spelled = body.get("role") if is_object(body) else None  # the original may be a string
    if type(spelled) is str and _OTHER_ROLES.get(spelled, message.role) is not message.role:
        body["role"] = role  # the role was changed
    return body


def _in_call_order(written: list[Any], parts: tuple[Any, ...], writing: Writing) -> None:
    """Sort results that are only distinguished by order into the order of their calls (W78)."""
    named: dict[str, list[int]] = {}
    for index, part in enumerate(parts):
        if type(part) is not ToolResult:
            break  # results come first
        call = writing.calls.get(part.call_id)
        if call is not None and wire_id(call, writing) is None:
            named.setdefault(call.name, []).append(index)
    for places in named.values():
        if len(places) > 1:
            ordered = sorted(places, key=lambda index: writing.order[parts[index].call_id])
            for place, body in zip(places, [written[index] for index in ordered], strict=True):
                written[place] = body


# --- whole requests

_PLACEHOLDER = "(content that can't be shown here)"
NO_SPEAKER_NAME = "message names are not supported"


def decode_request(body: Body, path: str | None = None) -> Request:
    """Decode a request; model and streaming are in the path."""
    kept = Overlay(NAME)
    wire = SETTINGS.renamed(dict(parsed(body, NAME)), kept)
    model, stream = decode_path(path)
    if model is None and type(name := wire.get("model")) is str:
        model = bare_model(name)
    request = BLANK.replace_trusted(
        model=model,
        stream=stream,
        system=_take_system(wire, kept),
        messages=_take_contents(wire, kept),
        tools=take_tools(wire, kept),
        **decode_settings(wire),
    )
    kept.compare(wire, encode_settings(request))
    extras = kept.extras()
    if extras is EMPTY:
        return request
    return with_digests(request.replace_trusted(extras=extras), NAME, SETTINGS.places)


def encode_request(request: Request, target: Target = TARGET) -> Encoded:
    """Encode a request as a body and a path."""
    writing = Writing(target)
    body: dict[str, Any] = {}
    system, contents = _encode_messages(request, writing)
    if system:
        body["systemInstruction"] = {"parts": system}
    if contents:
        body["contents"] = contents
    if tools := encode_tools(request.tools, request.extras, writing):
        body["tools"] = tools
    body |= encode_settings(request, writing)
    path = None
    if request.model is not None:
        path = encode_path(request.model, stream=bool(request.stream))
    if not _OWN_EXTRAS.isdisjoint(request.extras):
        body = with_overlay(body, without_edited(request, NAME, SETTINGS.places), NAME)
    return Encoded(body, path=path, losses=tuple(writing.losses), repairs=tuple(writing.repairs),
                   context=writing.context)  # fmt: skip


def _take_system(body: dict[str, Any], kept: Overlay) -> tuple[AnyPart, ...]:
    """Decode the system prompt, and take what was read out of the body."""
    wire = body.get("systemInstruction")
    if wire is None:
        return ()
    if not is_object(wire):
        guessed = [{"text": plain_text(wire)}]
        kept.guess(("systemInstruction",), {"parts": guessed}, wire)
        wire = {"parts": guessed}
    parts = wire.get("parts")
    if is_object(parts):
        kept.single("systemInstruction", "parts")
        parts = [parts]
    elif parts is not None and not is_list(parts):
        guessed = [{"text": plain_text(parts)}]
        kept.guess(("systemInstruction", "parts"), guessed, parts)
        parts = guessed
    if not parts:
        return ()
    del body["systemInstruction"]
    if left := {key: value for key, value in wire.items() if key != "parts"}:
        body["systemInstruction"] = left
    return decode_parts(parts, Reading(ORIGIN, CallIds()))


def _take_contents(body: dict[str, Any], kept: Overlay) -> tuple[Message, ...]:
    """Decode the contents, and take them out of the body."""
    if body.get("contents") in (None, []):
        return ()
    if is_object(body["contents"]):
        kept.single("contents")
        body["contents"] = [body["contents"]]
    contents = want(body, "contents", list, NAME, "$")
    del body["contents"]
    messages = decode_calls(lambda calls: _decode_listed(contents, calls))
    return tuple(unsealed_messages(messages, NAME))


def _decode_listed(wire: list[Any], calls: CallIds) -> list[Message]:
    messages: list[Message] = []
    reading = Reading(ORIGIN, calls)
    was_model = False
    for index, item in enumerate(wire):
        is_model = is_object(item) and item.get("role") == "model"
        if is_model and not was_model:
            calls.begin_step()  # consecutive model contents are one step
        was_model = is_model
        calls.at(index)
        role, parts, extras = decode_content(item, _USER, reading)
        origin = None if parts else ORIGIN  # shows that it was received without parts
        messages.append(make_message(role, parts, None, "", EMPTY, extras, origin))
    return messages


def _encode_system(parts: tuple[AnyPart, ...], writing: Writing) -> list[Any]:
    place, writing.place = writing.place, "system[{1}]"
    written = encode_parts(parts, 0, writing)
    writing.place = place
    return written


def _encode_messages(request: Request, writing: Writing) -> tuple[list[Any], list[dict[str, Any]]]:
    """Encode the system prompt, including system messages (W75), and the contents."""
    system = _encode_system(request.system, writing) if request.system else []
    contents: list[dict[str, Any]] = []
    for index, message in enumerate(request.messages):
        if (plain := _encode_plain(message)) is not None:
            contents.append(plain)
            continue
        if message.name is not None:
            writing.lose(f"messages[{index}].name", NO_SPEAKER_NAME)
        if is_instruction(message):
            writing.origin = message.origin
            system += encode_parts(message.parts, index, writing)
            if contents:
                reason = "a system message between other messages is moved to the system prompt"
                writing.repair(f"messages[{index}]", "W75", "moved", reason)
            continue
        content = encode_content(message, index, writing)
        if message.parts and is_object(content) and "parts" not in content:
            if message.role is _ASSISTANT:
                continue  # no part is supported, and each is reported
            # The turn must stay, or the responses before and after it would be merged.
            content["parts"] = [{"text": _PLACEHOLDER}]
        contents.append(content)
        if writing.hoisted:
            contents.append({"role": "user", "parts": writing.hoisted})
            writing.hoisted = []
    return system, contents
