"""Tool calls: `tool_calls`, `invalid_tool_calls`, and the provider's own in `additional_kwargs`.

A call may also be in the content, in its provider's form; it is decoded as one call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from dragoman.errors import InvalidInputError
from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY, thaw
from dragoman.model.jsontext import dumps, loads
from dragoman.model.tools import ToolCall, make_call
from dragoman.wire.call_ids import CallIds
from dragoman.wire.peers.kept_fields import mapping_at, text_at, wire_id_of
from dragoman.wire.peers.langchain.blocks import FACTS, KEEPER

RAW = "langchain raw call"
"""Kept for a call: the provider's own form in `additional_kwargs`."""
BLOCK = "langchain block"
"""Kept for a call that was also in the content: its block there, and its `tool_calls` entry."""
LEGACY = "function_call"
_LEGACY = f":{LEGACY}"
SIGNATURES = "__gemini_function_call_thought_signatures__"
_CALL = "tool_call"
_INVALID = "invalid_tool_call"


def decode_calls(dump: Mapping[str, Any], parts: list[AnyPart], calls: CallIds) -> list[AnyPart]:
    """The parts of a message with its calls: those in the content in place, then the others."""
    about = mapping_at(dump, "additional_kwargs")
    raw = _raw_by_id(about.get("tool_calls"))
    given = [*_entries(dump, "tool_calls"), *_entries(dump, "invalid_tool_calls")]
    if not given:
        given = _entries_in(about)
    waiting = [_decode_call(entry, raw, about, calls) for entry in given]
    placed = [_placed(part, waiting, calls) for part in parts]
    return [*placed, *waiting]


def _entries(dump: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = dump.get(key)
    return (
        [entry for entry in found if isinstance(entry, Mapping)] if isinstance(found, list) else []
    )


def _entries_in(about: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The legacy function call of a message, as an entry."""
    legacy = about.get(LEGACY)
    if not isinstance(legacy, Mapping) or not isinstance(legacy.get("name"), str):
        return []
    return [{"name": legacy["name"], "args": legacy.get("arguments"), "id": None, "type": LEGACY}]


def _raw_by_id(raw: Any) -> dict[str, Mapping[str, Any]]:
    calls = raw if isinstance(raw, list) else ()
    return {
        call["id"]: call
        for call in calls
        if isinstance(call, Mapping) and isinstance(call.get("id"), str)
    }


def _decode_call(
    entry: Mapping[str, Any], raw: Mapping[str, Any], about: Mapping[str, Any], calls: CallIds
) -> ToolCall:
    name, given = text_at(entry, "name") or "", text_at(entry, "id")
    call_id, kept_id = calls.add_named_call(name, given)
    arguments = _arguments(entry, raw.get(given) if given is not None else None)
    signature = text_at(mapping_at(about, SIGNATURES), given) if given else None
    call = make_call(call_id, name, **arguments, wire_id=kept_id, signature=signature)
    extras: dict[str, Any] = {}
    if given is not None and given in raw:
        extras[RAW] = {":given": raw[given]}
    if entry.get("type") == LEGACY:
        extras[RAW] = {_LEGACY: True}
        return replace(call, extras=extras)
    call = FACTS.with_fields(call, entry, _entry(call))
    return replace(call, extras={**call.extras, **extras}) if extras else call


def _arguments(entry: Mapping[str, Any], raw: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments; the model's own text if the provider's call has it and it is equivalent."""
    args = entry.get("args")
    if isinstance(args, str):
        return {"raw": args}
    text = text_at(mapping_at(raw or EMPTY, "function"), "arguments")
    if text is not None and _parsed(text) == args:
        return {"raw": text}
    return {"input": args if isinstance(args, Mapping) else EMPTY}


def _parsed(text: str) -> Any:
    try:
        return loads(text) if text.strip() else {}
    except InvalidInputError:
        return None


def _placed(part: AnyPart, waiting: list[ToolCall], calls: CallIds) -> AnyPart:
    """A part of the content; a call there is replaced by the `tool_calls` entry with its id."""
    if not isinstance(part, ToolCall):
        return part
    wire_id = wire_id_of(part)
    for at, call in enumerate(waiting):
        if wire_id == wire_id_of(call):
            del waiting[at]
            return _with_block(call, part)
    call_id, kept_id = calls.add_named_call(part.name, wire_id)
    return _with_block(replace(part, id=call_id, wire_id=kept_id, extras=EMPTY), part)


def _with_block(call: ToolCall, part: ToolCall) -> ToolCall:
    """The call with its content block; the two may differ, as they do after streaming."""
    given = KEEPER.given(part)
    others = KEEPER.without_own(part.extras)
    extras = {**others, **call.extras, BLOCK: {":given": given, ":entry": _entry(call)}}
    return replace(call, extras=extras)


def call_block(call: ToolCall) -> Any:
    """The content block of a call, if the call is unchanged."""
    kept = call.extras.get(BLOCK)
    if not isinstance(kept, Mapping) or thaw(kept.get(":entry")) != _entry(call):
        return None
    return thaw(kept.get(":given"))


def standard_block(call: ToolCall) -> Any:
    """The block of a call in content of standard blocks."""
    found = call_block(call)
    return _entry(call) if found is None else found


def _entry(call: ToolCall) -> dict[str, Any]:
    arguments, wire_id = call.object_arguments(), wire_id_of(call)
    if arguments is None:
        return {"name": call.name, "args": call.raw_arguments, "id": wire_id, "type": _INVALID}
    return {"name": call.name, "args": thaw(arguments), "id": wire_id, "type": _CALL}


def encode_calls(parts: Sequence[AnyPart], dump: dict[str, Any]) -> None:
    """Write the calls of a message into its dump."""
    valid: list[Any] = []
    invalid: list[Any] = []
    for call in (part for part in parts if isinstance(part, ToolCall)):
        if _is_legacy(call):
            continue
        entry = FACTS.put_back(_entry(call), call.extras)
        if entry["type"] == _INVALID:
            entry.setdefault("error", None)
        (invalid if entry["type"] == _INVALID else valid).append(entry)
    dump["tool_calls"], dump["invalid_tool_calls"] = valid, invalid


def raw_fields(parts: Sequence[AnyPart]) -> dict[str, Any]:
    """The calls in `additional_kwargs`: the provider's own form, and signatures."""
    calls = [part for part in parts if isinstance(part, ToolCall)]
    raw = [found for call in calls if (found := _raw_of(call)) is not None]
    fields: dict[str, Any] = {"tool_calls": raw} if raw else {}
    for call in calls:
        if _is_legacy(call):
            fields[LEGACY] = {"name": call.name, "arguments": call.raw_arguments}
    signed = {call.id: call.signature for call in calls if call.signature is not None}
    return {**fields, SIGNATURES: signed} if signed else fields


def _is_legacy(call: ToolCall) -> bool:
    kept = call.extras.get(RAW)
    return isinstance(kept, Mapping) and kept.get(_LEGACY) is True


def _raw_of(call: ToolCall) -> Any:
    """The provider's own call if it is unchanged, or one with the model's own text."""
    kept = call.extras.get(RAW)
    given = thaw(kept.get(":given")) if isinstance(kept, Mapping) else None
    function = given.get("function") if isinstance(given, dict) else None
    arguments = call.object_arguments()
    if isinstance(function, dict) and function.get("name") == call.name:
        text = str(function.get("arguments"))
        if text == call.raw_arguments or _parsed(text) == arguments:
            return given
    if call.raw is None or arguments is None or call.raw == dumps(arguments).decode("utf-8"):
        return None  # `tool_calls` has the same content
    function = {"name": call.name, "arguments": call.raw}
    return {"id": call.id, "type": "function", "function": function}
