"""Assistant messages: text, thinking, refusals and calls, and their metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from dragoman.errors import InvalidInputError
from dragoman.interop.peers.kept_fields import (
    Writing,
    count_at,
    mapping_at,
    text_at,
    usage_of,
    wire_id_of,
)
from dragoman.interop.peers.langchain.blocks import (
    FACTS,
    KEEPER,
    decode_content,
    encode_content,
    read_item,
)
from dragoman.interop.peers.providers import origin_at, provider_of
from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY, thaw
from dragoman.model.jsontext import dumps, loads
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Origin, Refusal, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, make_call
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.call_ids import CallIds
from dragoman.wire.overlay import fields_of, overlay_of, with_overlay

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


# --- LangChain's metadata of a response: tokens, finish reason, model

NAME = "langchain"
_FINISH_FIELDS = ("finish_reason", "stop_reason", "done_reason")
_FINISHES = {
    "stop": FinishReason.STOP,
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "completed": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "max_tokens": FinishReason.LENGTH,
    "max_output_tokens": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALLS,
    "tool_use": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.CONTENT_FILTER,
    "safety": FinishReason.CONTENT_FILTER,
    "prohibited_content": FinishReason.CONTENT_FILTER,
    "refusal": FinishReason.REFUSAL,
    "pause_turn": FinishReason.PAUSE,
    "model_context_window_exceeded": FinishReason.CONTEXT_FULL,
    "malformed_function_call": FinishReason.MALFORMED_CALL,
}
_PROVIDERS = {"google": "google_genai", "vertex": "google_vertexai", "mistral": "mistralai"}


# --- tokens


def decode_usage(wire: Any) -> Usage | None:
    """The counts of `usage_metadata`, whose totals include cache and thinking."""
    if not isinstance(wire, Mapping):
        return None
    into, out = (mapping_at(wire, f"{side}_token_details") for side in ("input", "output"))
    total = wire.get("total_tokens")
    usage = usage_of(
        wire,
        read=count_at(into, "cache_read"),
        written=count_at(into, "cache_creation"),
        thought=count_at(out, "reasoning"),
        total=total if type(total) is int else None,
    )
    extras = overlay_of(wire, (), NAME, encode_usage(usage), notes_absent=False)
    return usage.replace(extras=extras) if extras else usage


def encode_usage(usage: Usage) -> dict[str, Any]:
    """The counts as `usage_metadata`."""
    wire: dict[str, Any] = {
        "input_tokens": usage.total_input,
        "output_tokens": usage.total_output,
        "total_tokens": usage.total,
    }
    details = {"cache_read": usage.cache_read, "cache_creation": usage.cache_write}
    if any(details.values()):
        wire["input_token_details"] = {key: count for key, count in details.items() if count}
    if usage.thinking:
        wire["output_token_details"] = {"reasoning": usage.thinking}
    return wire if usage.extras is EMPTY else with_overlay(wire, usage.extras, NAME)


# --- finish reason


def decode_finish(metadata: Mapping[str, Any]) -> FinishReason | None:
    """The finish reason, whichever field and value the integration uses."""
    for field in _FINISH_FIELDS:
        word = metadata.get(field)
        if isinstance(word, str):
            return _FINISHES.get(word.lower(), FinishReason.OTHER)
    return None


def with_finish(metadata: dict[str, Any], finish: FinishReason | None) -> dict[str, Any]:
    """The metadata with the finish reason, unless it already has it."""
    if finish is decode_finish(metadata):
        return metadata
    others = {key: item for key, item in metadata.items() if key not in _FINISH_FIELDS}
    return others if finish is None else {**others, "finish_reason": finish.value}


# --- origin


def decode_origin(metadata: Mapping[str, Any], *, is_responses: bool) -> Origin | None:
    """The model that responded, if its provider is known."""
    model = metadata.get("model_name", metadata.get("model"))
    provider = metadata.get("model_provider")
    return origin_at(
        provider, model=model, response_id=metadata.get("id"), is_responses=is_responses
    )


def with_origin(metadata: dict[str, Any], origin: Origin | None) -> dict[str, Any]:
    """The metadata with the model and its provider, unless it already has them."""
    provider = provider_of(origin)
    if origin is None or provider is None or "model_provider" in metadata:
        return metadata
    named = {"model_provider": _PROVIDERS.get(provider, provider)}
    if origin.model is not None and metadata.keys().isdisjoint({"model_name", "model"}):
        named["model_name"] = origin.model
    if origin.response_id is not None and "id" not in metadata:
        named["id"] = origin.response_id
    return {**metadata, **named}


# --- assistant

VERSION = "output_version"
STANDARD = "v1"
NATIVE = ":native"
"""Kept for a message whose content was not in standard blocks."""
FIELD = "langchain field"
"""Kept for a part from outside the content: its field in `additional_kwargs`."""
_TEXT_FIELDS = {Thinking: "reasoning_content", Refusal: "refusal"}


def decode_answer(given: Mapping[str, Any], calls: CallIds, fields: dict[str, Any]) -> Message:
    """The assistant message in a dump; `fields` are those that every message has."""
    calls.begin_step()
    kwargs, about = mapping_at(given, "additional_kwargs"), mapping_at(given, "response_metadata")
    parts = decode_content(given.get("content"), is_answer=True)
    if given.get("content") == "" and _says_otherwise(given, kwargs):
        parts = []  # the empty text is only a placeholder
    parts = [*_thoughts(kwargs), *parts, *_refusals(kwargs)]
    parts = decode_calls(given, parts, calls)
    origin = decode_origin(about, is_responses=_is_of_responses(about, parts))
    return make_message(
        Role.ASSISTANT,
        tuple(_with_origins(parts, origin)),
        **fields,
        extras=EMPTY if about.get(VERSION) == STANDARD else {FACTS.name: {NATIVE: True}},
        origin=origin,
        usage=decode_usage(given.get("usage_metadata")),
        finish=decode_finish(about),
    )


def _says_otherwise(given: Mapping[str, Any], kwargs: Mapping[str, Any]) -> bool:
    calls = given.get("tool_calls") or given.get("invalid_tool_calls") or kwargs.get(LEGACY)
    return bool(calls or kwargs.get("refusal"))


def _is_of_responses(about: Mapping[str, Any], parts: Sequence[AnyPart]) -> bool:
    """Whether the response came from OpenAI's Responses API, by the ids of response and items."""
    has_items = any(isinstance(part, Thinking) and part.item_id for part in parts)
    return has_items or str(about.get("id", "")).startswith("resp_")


def _with_origins(parts: list[AnyPart], origin: Origin | None) -> list[AnyPart]:
    """Remove origins of parts that equal the message's own."""
    if origin is None:
        return parts
    return [
        replace(part, origin=None)
        if part.origin and part.origin.dialect == origin.dialect
        else part
        for part in parts
    ]


def _thoughts(kwargs: Mapping[str, Any]) -> list[AnyPart]:
    """Thinking outside the content: a text, or a whole Responses item."""
    text, item = kwargs.get("reasoning_content"), kwargs.get("reasoning")
    if isinstance(text, str):
        return [Thinking(text, extras={FIELD: {":name": "reasoning_content"}})]
    if not isinstance(item, Mapping) or not isinstance(item.get("summary"), list):
        return []
    first, *others = KEEPER.keep_whole(_read_reasoning(item), dict(item))
    return [replace(first, extras={**first.extras, FIELD: {":name": "reasoning"}}), *others]


def _read_reasoning(item: Any) -> list[AnyPart]:
    return read_item({"type": "reasoning", **item}, is_answer=True)


def _refusals(kwargs: Mapping[str, Any]) -> list[AnyPart]:
    text = kwargs.get("refusal")
    is_one = isinstance(text, str)
    return [Refusal(str(text), extras={FIELD: {":name": "refusal"}})] if is_one else []


# --- encoding


def encode_answer(message: Message, dump: dict[str, Any], writing: Writing) -> None:
    """Write the content of an assistant message into its dump."""
    _, standing = _divided(message.parts)
    parts = [message.parts[at] for at in standing]

    def lose(at: int, reason: str) -> None:
        writing.lose_at(standing[at], reason)

    block = call_block if not is_standard(message) else standard_block
    dump["content"] = encode_content(parts, lose, block, is_answer=True)
    encode_calls(message.parts, dump)
    dump["usage_metadata"] = None if message.usage is None else encode_usage(message.usage)


def is_standard(message: Message) -> bool:
    """Whether the content is written in standard blocks only, calls included.

    What came from LangChain keeps its form. A single text needs no blocks.
    """
    if FACTS.fields(message.extras).get(NATIVE):
        return False
    return any(not isinstance(part, Text) or part.citations for part in message.parts)


def generated_fields(message: Message) -> dict[str, Any]:
    """The content of `additional_kwargs`: parts that came from there, and providers' own calls."""
    fields, _ = _divided(message.parts)
    return {**fields, **raw_fields(message.parts)}


def _divided(parts: Sequence[AnyPart]) -> tuple[dict[str, Any], list[int]]:
    """The fields outside the content, and the indices of the parts in it."""
    fields: dict[str, Any] = {}
    standing: list[int] = []
    at = 0
    while at < len(parts):
        part = parts[at]
        name = fields_of(part.extras, FIELD).get(":name")
        is_first = name not in fields
        if name == "reasoning" and is_first:
            whole = KEEPER.whole(parts, at, _read_reasoning)
            if whole is not None:
                fields["reasoning"] = whole[0]
                at += whole[1]
                continue
        if (
            isinstance(part, (Thinking, Refusal))
            and is_first
            and name == (own := _TEXT_FIELDS[type(part)])
        ):
            fields[own] = part.text
        else:
            standing.append(at)
        at += 1
    return fields, standing


def with_facts(about: dict[str, Any], message: Message) -> dict[str, Any]:
    """The response metadata with finish reason, origin and content format."""
    facts = with_origin(with_finish(about, message.finish), message.origin)
    return {**facts, VERSION: STANDARD} if is_standard(message) else facts
