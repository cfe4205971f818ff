"""Requests: `generateContent` and `streamGenerateContent`."""

from __future__ import annotations

from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message, make_message
from dragoman.model.requests import Request, State
from dragoman.model.roles import Role
from dragoman.wire.agreement import Bearings, agreed, with_notes
from dragoman.wire.call_ids import CallIds, decode_calls
from dragoman.wire.dialect import Body
from dragoman.wire.encoded import Encoded
from dragoman.wire.gemini.adjustments import adjusted
from dragoman.wire.gemini.choice import TOOL_CONFIG, decode_choice, encode_choice
from dragoman.wire.gemini.contents import (
    decode_content,
    encode_content,
    encode_plain,
    is_instruction,
    lose_name,
)
from dragoman.wire.gemini.generation import GENERATION_CONFIG, decode_generation, encode_generation
from dragoman.wire.gemini.parts import decode_parts, encode_parts
from dragoman.wire.gemini.paths import bare_model, decode_path, encode_path
from dragoman.wire.gemini.signatures import Steps
from dragoman.wire.gemini.target import TARGET
from dragoman.wire.gemini.tools import decode_tools, encode_tools
from dragoman.wire.gemini.trace import (
    NAME,
    ORIGIN,
    Trace,
    as_it_came,
    is_array,
    is_object,
    snake_names,
    spelled,
    want_array,
)
from dragoman.wire.gemini.writing import Writing
from dragoman.wire.losses import Loss, Note, Repair
from dragoman.wire.overlay import parsed
from dragoman.wire.target import Target
from dragoman.wire.tolerance import plain_text
from dragoman.wire.unsealing import unsealed_messages

_STATE = {"cachedContent": "cached_content", "continuationToken": "continuation_token"}
_NAMES = snake_names("systemInstruction", "generationConfig", "toolConfig", *_STATE)
_TAKEN = frozenset({"contents", "systemInstruction", "tools", "toolConfig", "generationConfig"})
_BEARINGS: Bearings = {
    "model": "model",
    **spelled(
        {
            **{key: f"state.{name}" for key, name in _STATE.items()},
            "contents": "messages",
            "systemInstruction": {"parts": "system"},
            "tools": "tools",
            "toolConfig": TOOL_CONFIG,
            "generationConfig": GENERATION_CONFIG,
        }
    ),
}
_USER, _ASSISTANT = Role.USER, Role.ASSISTANT
_UNSAID = "(content that can't be shown here)"


def decode_request(body: Body, path: str | None = None) -> Request:
    """The request in a body; its model and whether it streams are in the path."""
    trace = Trace()
    wire = trace.camel(dict(parsed(body, NAME)), _NAMES)
    trace.fields.update(
        (key, value)
        for key, value in wire.items()
        if key not in _TAKEN and not (key in _STATE and type(value) is str)
    )
    model, stream = decode_path(path)
    if model is None and type(name := wire.get("model")) is str:
        model = bare_model(name)
    fields: dict[str, Any] = {}
    if "systemInstruction" in wire:
        fields["system"] = _decode_system(wire["systemInstruction"], trace)
    if "contents" in wire:
        fields["messages"] = _decode_contents(wire["contents"], trace)
    if "tools" in wire:
        fields["tools"] = decode_tools(wire["tools"], trace)
    if "toolConfig" in wire:
        fields["tool_choice"] = decode_choice(wire["toolConfig"], trace)
    if "generationConfig" in wire:
        fields |= decode_generation(wire["generationConfig"], trace)
    held = {name: wire[key] for key, name in _STATE.items() if type(wire.get(key)) is str}
    if held:
        fields["state"] = State(**held)
    request = Request(model=model, stream=stream, extras=trace.extras(), **fields)
    return request if request.extras is EMPTY else with_notes(request, NAME, _BEARINGS)


def encode_fitted(request: Request, target: Target) -> Encoded:
    """As `encode_request`, with settings that the target takes."""
    notes: list[Note] = []
    request = adjusted(request, target, notes)
    encoded = encode_request(request, target)
    encoded.losses = (*(note for note in notes if isinstance(note, Loss)), *encoded.losses)
    encoded.repairs = (*(note for note in notes if isinstance(note, Repair)), *encoded.repairs)
    return encoded


def encode_request(request: Request, target: Target = TARGET) -> Encoded:
    """The body and path for a request, as it is."""
    writing = Writing("messages[{}]", target=target)
    body: dict[str, Any] = {}
    system, contents = _encode_messages(request, writing)
    if system:
        body["systemInstruction"] = {"parts": system}
    if contents:
        body["contents"] = contents
    if tools := encode_tools(request.tools, request.extras, writing):
        body["tools"] = tools
    if choice := encode_choice(request.tool_choice, writing):
        body["toolConfig"] = choice
    if generation := encode_generation(request, writing):
        body["generationConfig"] = generation
    for key, name in _STATE.items():
        if (held := getattr(request.state, name, None)) is not None:
            body[key] = held
    path = None
    if request.model is not None:
        path = encode_path(request.model, stream=bool(request.stream))
    if request.extras is not EMPTY:
        body = as_it_came(body, agreed(request, NAME, _BEARINGS))
    return Encoded(body, path=path, losses=tuple(writing.losses), repairs=tuple(writing.repairs),
                   context=writing.schemas.context)  # fmt: skip


def _decode_system(wire: Any, trace: Trace) -> tuple[AnyPart, ...]:
    if wire is None:
        trace.fields["systemInstruction"] = None
        return ()
    if not is_object(wire):
        said = [{"text": plain_text(wire)}]
        trace.shape(["systemInstruction"], {"parts": said}, wire)
        wire = {"parts": said}
    parts = wire.get("parts")
    if is_object(parts):
        trace.single("systemInstruction.parts")
        parts = [parts]
    elif parts is not None and not is_array(parts):
        said = [{"text": plain_text(parts)}]
        trace.shape(["systemInstruction", "parts"], said, parts)
        parts = said
    decoded = decode_parts(parts, CallIds(), ORIGIN) if is_array(parts) else ()
    left = {key: value for key, value in wire.items() if key != "parts" or not decoded}
    if left or not decoded:
        trace.fields["systemInstruction"] = left
    return decoded


def _decode_contents(wire: Any, trace: Trace) -> tuple[Message, ...]:
    if is_object(wire):
        trace.single("contents")
        wire = [wire]
    if wire is None or wire == []:
        trace.fields["contents"] = wire
        return ()
    listed = want_array(wire, "$.contents")
    return tuple(unsealed_messages(decode_calls(lambda calls: _decode_listed(listed, calls))))


def _decode_listed(wire: list[Any], calls: CallIds) -> list[Message]:
    messages: list[Message] = []
    was_model = False
    for index, item in enumerate(wire):
        is_model = is_object(item) and item.get("role") == "model"
        if is_model and not was_model:
            calls.begin_step()  # neighbouring contents of the model are one
        was_model = is_model
        calls.at(index)
        role, parts, extras = decode_content(item, calls, _USER, ORIGIN)
        origin = None if parts else ORIGIN  # one without parts came without
        messages.append(make_message(role, parts, None, "", EMPTY, extras, origin))
    return messages


def _encode_messages(request: Request, writing: Writing) -> tuple[list[Any], list[dict[str, Any]]]:
    """The parts of the system prompt, and the contents, which know no system role (W75)."""
    system = encode_parts(request.system, -1, writing) if request.system else []
    contents: list[dict[str, Any]] = []
    steps = Steps(request.messages) if writing.target.signs_calls else None
    for index, message in enumerate(request.messages):
        plain = encode_plain(message, index, writing) if steps is None else None
        if plain is not None:
            contents.append(plain)
            continue
        if is_instruction(message):
            writing.origin = message.origin
            system += encode_parts(message.parts, index, writing)
            lose_name(message, index, writing)
            if contents:
                reason = "a later instruction goes to the system prompt"
                writing.repairs.append(Repair(f"messages[{index}]", "W75", "moved", reason))
            continue
        content = encode_content(message, index, writing)
        if message.parts and is_object(content) and "parts" not in content:
            if message.role is _ASSISTANT:
                continue  # nothing of it could be said, and each part has its loss
            # Who spoke is part of the conversation; without them two answers would be one.
            content["parts"] = [{"text": _UNSAID}]
        if steps is not None and is_object(content) and steps.sign(content, index):
            reason = "a word that stands for a signature"
            writing.repairs.append(Repair(f"messages[{index}]", "W83", "added", reason))
        contents.append(content)
        if writing.hoisted:
            contents.append({"role": "user", "parts": writing.hoisted})
            writing.hoisted = []
    return system, contents
