"""Tool calls, also in their old form (`function_call`), and those that the server ran."""

from __future__ import annotations

from typing import Any, Literal

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


ARGUMENTS = {"function": "arguments", "custom": "input"}
"""By the kind of a call: the field for what it is called with."""


def decode_call(wire: Any, reading: Reading) -> AnyPart:
    """One of `tool_calls`; what is unknown or malformed is carried whole."""
    call = _decode_call(wire, reading) if is_object(wire) else None
    if call is not None:
        return call
    return Opaque(NAME, wire, origin=reading.origin, extras=extras_of({}, NAME, ("tool_calls",)))


def _decode_call(wire: dict[str, Any], reading: Reading) -> ToolCall | None:
    given, wire_id = wire.get("type"), wire.get("id")
    kind: Literal["function", "custom"] = "custom" if given == "custom" else "function"
    inner = wire.get(kind) if given in (None, kind) else None
    if not is_object(inner) or not isinstance(name := inner.get("name"), str):
        return None
    said = inner.get(ARGUMENTS[kind])
    words: list[str] = [] if given else ["-type"]
    known: set[str] = {"type", kind} if given else {kind}
    if not isinstance(said, str):
        if kind == "custom" or not (said is None or is_object(said)):
            return None
        words.append("-arguments" if said is None else "object")
    if isinstance(wire_id, str):
        known.add("id")
    else:
        wire_id = None
        words.append("tool_calls")
    signature = decode_signature(wire)
    if signature is not None:
        known.add("extra_content")
        reading.has_envelopes = reading.has_envelopes or signature.startswith(PREFIX)
    left = {key: value for key, value in wire.items() if key not in known}
    told = ("name",) if said is None else ("name", ARGUMENTS[kind])
    if odd := {key: value for key, value in inner.items() if key not in told}:
        left[kind] = odd
    call_id, own_id = reading.calls.add_call(name, wire_id, said)
    is_bare = kind == "function" and isinstance(said, str) and is_blank(said)
    is_bound = signature is not None or own_id is not UNSET or is_bare
    return make_call(
        call_id,
        name,
        **({"raw": said} if isinstance(said, str) else {"input": said or EMPTY}),
        kind=kind,
        wire_id=own_id,
        signature=signature,
        origin=reading.origin if is_bound else None,
        extras=extras_of(left, NAME, words),
    )


def decode_signature(wire: dict[str, Any]) -> str | None:
    """Gemini's thought signature, where nothing else is beside it."""
    content = wire.get("extra_content")
    google = content.get(_GOOGLE) if is_object(content) and len(content) == 1 else None
    if is_object(google) and len(google) == 1:
        signature = google.get("thought_signature")
        return signature if isinstance(signature, str) else None
    return None


def encode_signature(signature: str) -> dict[str, Any]:
    """The `extra_content` of a call that Gemini signed."""
    return {_GOOGLE: {"thought_signature": signature}}


def encode_call(call: ToolCall, writing: ChatWriting) -> dict[str, Any]:
    """One of `tool_calls`; the wire's own id goes only where it came from."""
    words, wire_id = words_of(call.extras, NAME), call.wire_id
    if wire_id is UNSET or not writing.is_own(call):
        wire_id = call.id
    else:
        writing.wire_ids[call.id] = wire_id
    body: dict[str, Any] = {} if wire_id is None else {"id": wire_id}
    if "-type" not in words:
        body["type"] = call.kind
    inner: dict[str, Any] = {"name": call.name}
    body[call.kind] = inner
    if call.kind == "custom":
        inner["input"] = call.raw_arguments
    elif "object" in words and call.input is not None:
        inner["arguments"] = call.input
    elif "-arguments" not in words or call.input or call.raw:
        inner["arguments"] = _arguments_text(call, writing)
    if call.signature is not None and not writing.is_foreign(call):
        body["extra_content"] = encode_signature(call.signature)
    return with_overlay(body, call.extras, NAME)


def _arguments_text(call: ToolCall, writing: ChatWriting) -> str:
    """The arguments; others' calls without any have an empty object, which whoever reads parses.

    One that was cut off before them stays without (I7).
    """
    raw = call.raw_arguments
    if not is_blank(raw) or writing.is_cut_off or writing.is_own(call):
        return raw
    return NO_ARGUMENTS


def decode_function_call(wire: Any, reading: Reading) -> ToolCall | None:
    """The old `function_call`: a call without an id, which is how it is known again."""
    if not is_object(wire):
        return None
    name, arguments = wire.get("name"), wire.get("arguments")
    if not isinstance(name, str) or not isinstance(arguments, str):
        return None
    left = {key: value for key, value in wire.items() if key not in ("name", "arguments")}
    return make_call(
        reading.calls.add_call(name, None, arguments)[0],
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
