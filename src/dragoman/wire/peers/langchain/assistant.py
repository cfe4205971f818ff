"""The model's messages: what it said, thought, refused and called, and the facts about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Origin, Refusal, Text, Thinking
from dragoman.model.roles import Role
from dragoman.wire.call_ids import CallIds
from dragoman.wire.overlay import overlay
from dragoman.wire.peers.keeping import Writing
from dragoman.wire.peers.langchain.answers import (
    decode_finish,
    decode_origin,
    decode_usage,
    encode_usage,
    with_finish,
    with_origin,
)
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

VERSION = "output_version"
STANDARD = "v1"
NATIVE = ":native"
"""Kept of a message whose content was not in standard blocks."""
FIELD = "langchain field"
"""Kept of a part that did not stand in the content: its field in `additional_kwargs`."""
_TEXT_FIELDS = {Thinking: "reasoning_content", Refusal: "refusal"}


def decode_answer(given: Mapping[str, Any], calls: CallIds, fields: dict[str, Any]) -> Message:
    """The model's message in a dump; `fields` are those that every message has."""
    calls.begin_step()
    kwargs, about = _mapping(given, "additional_kwargs"), _mapping(given, "response_metadata")
    parts = decode_content(given.get("content"), is_answer=True)
    if given.get("content") == "" and _says_otherwise(given, kwargs):
        parts = []  # the empty text only stands for none
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


def _mapping(given: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = given.get(key)
    return found if isinstance(found, Mapping) else EMPTY


def _says_otherwise(given: Mapping[str, Any], kwargs: Mapping[str, Any]) -> bool:
    calls = given.get("tool_calls") or given.get("invalid_tool_calls") or kwargs.get(LEGACY)
    return bool(calls or kwargs.get("refusal"))


def _is_of_responses(about: Mapping[str, Any], parts: Sequence[AnyPart]) -> bool:
    """Whether OpenAI answered over its Responses API, which has ids for responses and items."""
    has_items = any(isinstance(part, Thinking) and part.item_id for part in parts)
    return has_items or str(about.get("id", "")).startswith("resp_")


def _with_origins(parts: list[AnyPart], origin: Origin | None) -> list[AnyPart]:
    """Without the origins that the message's own says for all its parts."""
    if origin is None:
        return parts
    return [
        replace(part, origin=None)
        if part.origin and part.origin.dialect == origin.dialect
        else part
        for part in parts
    ]


def _thoughts(kwargs: Mapping[str, Any]) -> list[AnyPart]:
    """Thinking beside the content: a text, or a whole item of Responses."""
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


# --- the other way


def encode_answer(message: Message, dump: dict[str, Any], writing: Writing) -> None:
    """Write what the model said into the dump of its message."""
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

    What came from LangChain stays as it came. A text alone needs no blocks.
    """
    if FACTS.fields(message.extras).get(NATIVE):
        return False
    return any(not isinstance(part, Text) or part.citations for part in message.parts)


def generated_fields(message: Message) -> dict[str, Any]:
    """What stands in `additional_kwargs`: parts that came from there, and providers' own calls."""
    fields, _ = _divided(message.parts)
    return {**fields, **raw_fields(message.parts)}


def _divided(parts: Sequence[AnyPart]) -> tuple[dict[str, Any], list[int]]:
    """The fields beside the content, and the places of the parts in it."""
    fields: dict[str, Any] = {}
    standing: list[int] = []
    at = 0
    while at < len(parts):
        part = parts[at]
        name = overlay(part.extras, FIELD).get(":name")
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
    """The response's metadata with why it ended, who answered and how the content is written."""
    facts = with_origin(with_finish(about, message.finish), message.origin)
    return {**facts, VERSION: STANDARD} if is_standard(message) else facts
