"""Tool calls, also in their old form (`function_call`), and those that the server ran."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Opaque, Origin, ServerToolCall, ServerToolResult
from dragoman.model.tools import ToolCall, make_call
from dragoman.wire.envelope import PREFIX
from dragoman.wire.fitting.tools import NO_ARGUMENTS, is_blank
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.openai_chat.dialect import NAME, ChatWriting
from dragoman.wire.overlay import extras_of, overlay_of, with_overlay, words_of
from dragoman.wire.reading import Reading

_GOOGLE = "google"  # Gemini's thought signatures behind its Chat front (W17, W100)


def decode_call(wire: Any, reading: Reading) -> AnyPart:
    """One of `tool_calls`; what is unknown or malformed is carried whole."""
    call: ToolCall | None = None
    if isinstance(wire, dict):
        kind = wire.get("type")
        if kind == "function" and len(wire) == 3:  # noqa: PLR2004 - id, type and function
            call = _decode_plain(wire, reading)
            if call is not None:
                return call
        if kind is None or kind == "function":
            call = _decode_function(wire, reading)
        elif kind == "custom":
            call = _decode_custom(wire, reading)
    if call is not None:
        return call
    return Opaque(NAME, wire, origin=reading.origin, extras=extras_of({}, NAME, ("tool_calls",)))


def _decode_plain(wire: dict[str, Any], reading: Reading) -> ToolCall | None:
    """The call that nearly all are: an id, a name and the arguments as text."""
    wire_id, function = wire.get("id"), wire.get("function")
    if type(wire_id) is not str or type(function) is not dict or len(function) != 2:  # noqa: PLR2004
        return None
    name, arguments = function.get("name"), function.get("arguments")
    if type(name) is not str or type(arguments) is not str:
        return None
    call_id, kept = reading.calls.admit(name, wire_id, arguments)
    if kept is not UNSET:
        return make_call(call_id, name, arguments, wire_id=kept, origin=reading.origin)
    if is_blank(arguments):
        return make_call(call_id, name, arguments, origin=reading.origin)
    return make_call(call_id, name, arguments)


def _decode_function(wire: dict[str, Any], reading: Reading) -> ToolCall | None:
    function = wire.get("function")
    if not is_object(function) or not isinstance(name := function.get("name"), str):
        return None
    arguments, words = function.get("arguments"), [] if wire.get("type") else ["-type"]
    known = ["name", "arguments"]
    if is_object(arguments):
        words.append("object")
    elif arguments is None:
        words.append("-arguments")
        known.remove("arguments")
    elif not isinstance(arguments, str):
        return None
    left = {key: value for key, value in function.items() if key not in known}
    fields = _call_fields(wire, "function", left, words, reading)
    if isinstance(arguments, str):
        if is_blank(arguments):
            fields["origin"] = reading.origin
        return make_call(name=name, raw=arguments, **fields)
    return make_call(name=name, input=arguments or EMPTY, **fields)


def _decode_custom(wire: dict[str, Any], reading: Reading) -> ToolCall | None:
    custom = wire.get("custom")
    if not is_object(custom):
        return None
    name, text = custom.get("name"), custom.get("input")
    if not isinstance(name, str) or not isinstance(text, str):
        return None
    left = {key: value for key, value in custom.items() if key not in ("name", "input")}
    fields = _call_fields(wire, "custom", left, [], reading)
    return make_call(name=name, raw=text, kind="custom", **fields)


def _call_fields(
    wire: dict[str, Any], key: str, inner: dict[str, Any], words: list[str], reading: Reading
) -> dict[str, Any]:
    """What function and custom calls share: ids, origin, signature and extras."""
    known = {"type", key} if wire.get("type") else {key}
    wire_id = wire.get("id")
    if isinstance(wire_id, str):
        known.add("id")
    else:
        wire_id = None
        words.append("tool_calls")
    signature = decode_signature(wire)
    if signature is not None:
        known.add("extra_content")
        reading.has_envelopes = reading.has_envelopes or signature.startswith(PREFIX)
    left = {name: value for name, value in wire.items() if name not in known}
    if inner:
        left[key] = inner
    said = wire[key]
    arguments = said.get("arguments" if key == "function" else "input")
    call_id, own_id = reading.calls.admit(said["name"], wire_id, arguments)
    is_bound = signature is not None or own_id is not UNSET
    return {
        "id": call_id,
        "wire_id": own_id,
        "origin": reading.origin if is_bound else None,
        "signature": signature,
        "extras": extras_of(left, NAME, words),
    }


def decode_signature(wire: dict[str, Any]) -> str | None:
    """Gemini's thought signature, where nothing else is beside it."""
    content = wire.get("extra_content")
    google = content.get(_GOOGLE) if is_object(content) and len(content) == 1 else None
    if is_object(google) and len(google) == 1:
        signature = google.get("thought_signature")
        return signature if isinstance(signature, str) else None
    return None


def encode_call(call: ToolCall, writing: ChatWriting) -> dict[str, Any]:
    """One of `tool_calls`."""
    if call.wire_id is UNSET and call.extras is EMPTY and call.signature is None:
        function: dict[str, Any] = {"name": call.name}
        if call.kind == "function":
            function["arguments"] = _arguments_text(call, writing)
            return {"id": call.id, "type": "function", "function": function}
    words = words_of(call.extras, NAME)
    body: dict[str, Any] = {} if "-type" in words else {"type": call.kind}
    wire_id = wire_id_of(call, writing)
    if wire_id is not None:
        body["id"] = wire_id
    body[call.kind] = _encode_arguments(call, words, writing)
    if call.signature is not None and not writing.is_foreign(call):
        body["extra_content"] = {_GOOGLE: {"thought_signature": call.signature}}
    return with_overlay(body, call.extras, NAME)


def _encode_arguments(call: ToolCall, words: Any, writing: ChatWriting) -> dict[str, Any]:
    if call.kind == "custom":
        return {"name": call.name, "input": call.raw_arguments}
    if "-arguments" in words and not call.input and not call.raw:
        return {"name": call.name}
    if "object" in words and call.input is not None:
        return {"name": call.name, "arguments": call.input}
    return {"name": call.name, "arguments": _arguments_text(call, writing)}


def _arguments_text(call: ToolCall, writing: ChatWriting) -> str:
    """The arguments; others' calls without any have an empty object, which whoever reads parses.

    One that was cut off before them stays without (I7).
    """
    raw = call.raw_arguments
    if not is_blank(raw) or writing.is_cut_off or writing.is_own(call):
        return raw
    return NO_ARGUMENTS


def wire_id_of(call: ToolCall, writing: ChatWriting) -> str | None:
    """The id a call goes by on the wire; the wire's own only where it came from."""
    if call.wire_id is UNSET or not writing.is_own(call):
        return call.id
    writing.wire_ids[call.id] = call.wire_id
    return call.wire_id


def decode_function_call(wire: Any, reading: Reading) -> ToolCall | None:
    """The old `function_call`: a call without an id, which is how it is known again."""
    if not is_object(wire):
        return None
    name, arguments = wire.get("name"), wire.get("arguments")
    if not isinstance(name, str) or not isinstance(arguments, str):
        return None
    left = {key: value for key, value in wire.items() if key not in ("name", "arguments")}
    return make_call(
        reading.calls.admit(name, None, arguments)[0],
        name,
        arguments,
        wire_id=None,
        origin=reading.origin,
        extras=extras_of(left, NAME),
    )


def encode_function_call(call: ToolCall, writing: ChatWriting) -> dict[str, Any]:
    """The old `function_call`."""
    writing.legacy.add(call.id)
    writing.wire_ids[call.id] = None
    return with_overlay({"name": call.name, "arguments": call.raw_arguments}, call.extras, NAME)


def is_legacy(call: ToolCall, writing: ChatWriting) -> bool:
    """Whether a call came as `function_call`."""
    return (
        call.wire_id is None
        and call.kind == "function"
        and "tool_calls" not in words_of(call.extras, NAME)
        and writing.is_own(call)
    )


# --- tools that the server ran: Groq's `executed_tools`, where one object is call and result

EXECUTED_TOOLS = "executed_tools"
_OUTCOME = ("output", "search_results", "code_results", "browser_results")


def decode_server_tools(wire: Any, origin: Origin | None) -> list[AnyPart]:
    """A call and its result for each executed tool; none where one of them is malformed."""
    parts: list[AnyPart] = []
    for item in wire if is_list(wire) else ():
        name = item.get("type") if is_object(item) else None
        if not is_object(item) or not isinstance(name, str):
            return []
        known = (
            {"type", "arguments", *_OUTCOME}
            if item.get("arguments") is not None
            else {"type", *_OUTCOME}
        )
        extras = overlay_of(item, known, NAME)
        parts.append(
            ServerToolCall(name, input=item.get("arguments"), origin=origin, extras=extras)
        )
        outcome = {key: item[key] for key in _OUTCOME if key in item}
        if outcome:
            parts.append(ServerToolResult(name, content=outcome, origin=origin))
    return parts


def encode_server_tool(
    part: ServerToolCall | ServerToolResult, executed: list[dict[str, Any]]
) -> None:
    """Write a call as a new executed tool, or a result into the last one."""
    if isinstance(part, ServerToolCall):
        arguments = {} if part.input is None else {"arguments": part.input}
        executed.append(with_overlay({"type": part.name, **arguments}, part.extras, NAME))
        return
    if not executed:
        executed.append({"type": part.name})
    executed[-1].update(part.content if is_object(part.content) else {"output": part.content})
