"""Assistant messages: text, thinking, refusals and calls, and their metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Origin, Refusal, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.call_ids import CallIds
from dragoman.wire.overlay import fields_of, overlay_of, with_overlay
from dragoman.wire.peers.kept_fields import Writing, count_at, mapping_at, usage_of
from dragoman.wire.peers.langchain.blocks import (
    FACTS,
    KEEPER,
    decode_content,
    encode_content,
    read_item,
)
from dragoman.wire.peers.langchain.calls import (
    LEGACY,
    call_block,
    decode_calls,
    encode_calls,
    raw_fields,
    standard_block,
)
from dragoman.wire.peers.providers import origin_at, provider_of

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
