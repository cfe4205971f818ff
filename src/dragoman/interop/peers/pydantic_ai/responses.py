"""Assistant messages: `ModelResponse` and its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from dragoman.interop.peers.kept_fields import (
    Given,
    Keeper,
    Writing,
    count_at,
    mapping_at,
    text_at,
    usage_of,
)
from dragoman.interop.peers.providers import origin_at, provider_of
from dragoman.interop.peers.pydantic_ai.content import (
    KEEPER,
    NAME,
    decode_citations,
    decode_file,
    decode_time,
    encode_citations,
    encode_file,
    encode_time,
    fields_kept,
    significant,
    tidy,
    with_fields,
)
from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY, thaw
from dragoman.model.jsontext import dumps
from dragoman.model.media import Audio, File, Image, Video
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import (
    Opaque,
    Origin,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, make_call
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.overlay import overlay_of, with_overlay

# --- token counts, finish reason and origin

_FINISHES = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "content_filter": FinishReason.CONTENT_FILTER,
    "tool_call": FinishReason.TOOL_CALLS,
    "error": FinishReason.ERROR,
}
_WORDS = {finish: word for word, finish in _FINISHES.items()} | {
    FinishReason.REFUSAL: "content_filter",
    FinishReason.CONTEXT_FULL: "length",
    FinishReason.MALFORMED_CALL: "error",
    FinishReason.CANCELLED: "error",
}


def decode_usage(given: Any) -> Usage | None:
    """The counts of a response; None if there are none. Totals include cached tokens."""
    if not isinstance(given, Mapping) or not any(given.values()):
        return None
    details = mapping_at(given, "details")
    usage = usage_of(
        given,
        read=count_at(given, "cache_read_tokens"),
        written=count_at(given, "cache_write_tokens"),
        thought=count_at(given, "output_reasoning_tokens") or count_at(details, "reasoning_tokens"),
    )
    ours = encode_usage(usage)
    kept = {key: item for key, item in given.items() if item or key in ours}
    extras = overlay_of(kept, (), NAME, ours, notes_absent=False)
    return usage.replace(extras=extras) if extras else usage


def encode_usage(usage: Usage) -> dict[str, Any]:
    """The counts in pydantic-ai's form."""
    counts = {
        "input_tokens": usage.total_input,
        "cache_write_tokens": usage.cache_write,
        "cache_read_tokens": usage.cache_read,
        "output_tokens": usage.total_output,
        "output_reasoning_tokens": usage.thinking,
    }
    written: dict[str, Any] = {key: count for key, count in counts.items() if count}
    return written if usage.extras is EMPTY else with_overlay(written, usage.extras, NAME)


def decode_finish(word: Any) -> FinishReason | None:
    """The finish reason."""
    if not isinstance(word, str):
        return None
    return _FINISHES.get(word, FinishReason.OTHER)


def encode_finish(finish: FinishReason) -> tuple[str | None, bool]:
    """The library's value for a finish reason, and whether it is exact."""
    word = _WORDS.get(finish)
    return word, word is not None and _FINISHES[word] is finish


# --- responses

_REDACTED = "redacted_thinking"  # the id of Anthropic's encrypted thinking there
_SIGNATURE = "thought_signature"  # where Google's signatures are kept
_RESPONSES_IDS = ("rs_", "msg_", "fc_", "resp_")
_MEDIA = (Image, Audio, Video, File)
_FILE_PARTS = Keeper("pydantic-ai part facts")
"""For the part around a file; the fields of the file itself are kept separately."""


def decode_answer(given: Given) -> Message:
    """The message of a response."""
    items = [item for item in given.get("parts") or () if isinstance(item, Mapping)]
    response_id = text_at(given, "provider_response_id") or text_at(given, "vendor_id")
    ids = [response_id, *(text_at(item, "id") for item in items)]
    is_responses = any(id is not None and id.startswith(_RESPONSES_IDS) for id in ids)
    origin = origin_at(
        given.get("provider_name"),
        model=given.get("model_name"),
        response_id=response_id,
        is_responses=is_responses,
    )
    message = make_message(
        Role.ASSISTANT,
        tuple([_decode_part(item, origin) for item in items]),
        metadata=mapping_at(given, "metadata") or EMPTY,
        origin=origin,
        usage=decode_usage(given.get("usage")),
        finish=decode_finish(given.get("finish_reason")),
        created_at=decode_time(given.get("timestamp")),
    )
    ours = _fields(message, Writing())
    kept = {key: item for key, item in given.items() if key not in {"parts", "usage"}}
    extras = fields_kept(kept, ours)
    return replace(message, extras=extras) if extras else message


def encode_answer(message: Message, writing: Writing) -> dict[str, Any]:
    """The response for an assistant message."""
    parts: list[Any] = []
    for at, part in enumerate(message.parts):
        writing.part = at
        if isinstance(part, Opaque) and part.dialect == NAME:
            parts.append(thaw(part.payload))
            continue
        written = _encode_part(part, message.origin, writing)
        keeper = _FILE_PARTS if isinstance(part, _MEDIA) else KEEPER
        parts += [] if written is None else [keeper.put_back(written, part.extras)]
    if message.name is not None:
        writing.lose_field("name", "pydantic-ai messages have no names")
    body = KEEPER.put_back(_fields(message, writing), message.extras)
    if message.usage is not None:
        body["usage"] = encode_usage(message.usage)
    return {**body, "parts": parts}


def _fields(message: Message, writing: Writing) -> dict[str, Any]:
    """The fields of a response, except its parts and usage."""
    body: dict[str, Any] = {"kind": "response"}
    if message.metadata:
        body["metadata"] = thaw(message.metadata)
    if message.finish is not None:
        word, is_exact = encode_finish(message.finish)
        if word is not None:
            body["finish_reason"] = word
        if not is_exact:
            writing.omit("finish", "pydantic-ai has no exact equivalent of this finish reason")
    time = None if message.created_at is None else encode_time(message.created_at)
    if time is not None:
        body["timestamp"] = time
    origin = message.origin
    if origin is not None:
        about = {"provider_name": provider_of(origin), "model_name": origin.model,
                 "provider_response_id": origin.response_id}  # fmt: skip
        body.update({key: text for key, text in about.items() if text is not None})
    return body


# --- parts


def _decode_part(item: Given, origin: Origin | None) -> AnyPart:
    read = _READERS.get(item.get("part_kind", ""))
    part = None if read is None else read(item)
    if part is None:
        return Opaque(NAME, item)
    own = origin_at(item.get("provider_name"), is_responses=_is_of_responses(item))
    if own is not None and (origin is None or own.provider != origin.provider):
        part = replace(part, origin=own)
    details = mapping_at(item, "provider_details")
    signature = text_at(details, _SIGNATURE)
    if signature is not None:
        part = replace(part, signature=signature)
    ours = _encode_part(part, origin, Writing()) or {}
    if isinstance(part, _MEDIA):
        given = significant({**item, "content": tidy(item["content"])}, ours)
        return _FILE_PARTS.with_fields(part, given, ours)
    return with_fields(part, item, ours)


def _is_of_responses(item: Given) -> bool:
    return (text_at(item, "id") or "").startswith(_RESPONSES_IDS)


def _decode_text(item: Given) -> AnyPart | None:
    text = text_at(item, "content")
    if text is None:
        return None
    return Text(text, decode_citations(item.get("citations")), item_id=text_at(item, "id"))


def _decode_thinking(item: Given) -> AnyPart | None:
    text, signature, item_id = (text_at(item, key) for key in ("content", "signature", "id"))
    if text is None:
        return None
    if item_id == _REDACTED:
        return Thinking(text, signature, "redacted")
    if _is_of_responses(item):  # its signature is the encrypted reasoning of the item
        return Thinking(text, signature, "summary" if text else "redacted", item_id=item_id)
    return Thinking(text, signature=signature)


def _decode_call(item: Given) -> AnyPart | None:
    name, call_id, args = (
        text_at(item, "tool_name"),
        text_at(item, "tool_call_id"),
        item.get("args"),
    )
    if name is None or call_id is None:
        return None
    arguments: dict[str, Any] = {"raw": args} if isinstance(args, str) else {"input": args or EMPTY}
    return make_call(call_id, name, **arguments, item_id=text_at(item, "id"))


def _decode_server_call(item: Given) -> AnyPart | None:
    name = text_at(item, "tool_name")
    if name is None:
        return None
    call_id, item_id = text_at(item, "tool_call_id"), text_at(item, "id")
    return ServerToolCall(name, call_id=call_id, input=item.get("args"), item_id=item_id)


def _decode_server_result(item: Given) -> AnyPart | None:
    name = text_at(item, "tool_name")
    if name is None:
        return None
    is_error = item.get("outcome", "success") != "success"
    call_id = text_at(item, "tool_call_id")
    return ServerToolResult(name, call_id=call_id, content=item.get("content"), is_error=is_error)


def _decode_file(item: Given) -> AnyPart | None:
    file = decode_file(item.get("content"))
    return None if file is None else replace(file, item_id=text_at(item, "id"))  # type: ignore[return-value]  # of AnyPart


_READERS: dict[Any, Callable[[Given], AnyPart | None]] = {
    "text": _decode_text,
    "thinking": _decode_thinking,
    "tool-call": _decode_call,
    "builtin-tool-call": _decode_server_call,
    "builtin-tool-return": _decode_server_result,
    "file": _decode_file,
}


def _encode_part(part: AnyPart, origin: Origin | None, writing: Writing) -> dict[str, Any] | None:
    """A part in pydantic-ai's form; None if there is none for it."""
    item = _written(part, origin, writing)
    if item is None:
        return None
    if part.item_id is not None:
        item["id"] = part.item_id
    if part.signature is not None and not isinstance(part, Thinking):
        item["provider_details"] = {_SIGNATURE: part.signature}
    if not item.keys().isdisjoint({"id", "signature", "provider_details"}):
        provider = provider_of(part.origin or origin)
        if provider is not None:
            item["provider_name"] = provider
    return item


def _written(part: AnyPart, origin: Origin | None, writing: Writing) -> dict[str, Any] | None:
    if isinstance(part, (Text, Refusal)):
        return _encode_text(part, writing)
    if isinstance(part, Thinking):
        return _encode_thinking(part)
    if isinstance(part, ToolCall):
        return _encode_call(part, writing)
    if isinstance(part, (ServerToolCall, ServerToolResult)):
        return _encode_server_tool(part, writing)
    if isinstance(part, _MEDIA) and part.data is not None:
        return {"part_kind": "file", "content": encode_file(part, origin, writing)}
    writing.lose("this kind of content is not supported in pydantic-ai responses")
    return None


def _encode_text(part: Text | Refusal, writing: Writing) -> dict[str, Any]:
    item: dict[str, Any] = {"part_kind": "text", "content": part.text}
    if isinstance(part, Refusal):
        writing.lose("a refusal is written as text", ".type")
    elif part.citations:
        item["citations"], lost = encode_citations(part.citations)
        if lost:
            writing.lose("citations without URL, title or quote are left out", ".citations")
    return item


def _encode_thinking(part: Thinking) -> dict[str, Any]:
    item: dict[str, Any] = {"part_kind": "thinking", "content": part.text}
    if part.data is not None:
        item["signature"] = part.data
        if part.item_id is None:
            item["id"] = _REDACTED
    elif part.signature is not None:
        item["signature"] = part.signature
    return item


def _encode_call(part: ToolCall, writing: Writing) -> dict[str, Any]:
    if part.kind == "custom":
        writing.lose("a custom tool call is written as a function call", ".kind")
    args = part.raw if part.raw is not None else thaw(part.input)
    item = {"part_kind": "tool-call", "tool_name": part.name, "tool_call_id": part.id}
    return {**item, "args": args}


def _encode_server_tool(
    part: ServerToolCall | ServerToolResult, writing: Writing
) -> dict[str, Any]:
    item: dict[str, Any] = {"tool_name": part.name}
    if part.call_id is not None:
        item["tool_call_id"] = part.call_id
    if isinstance(part, ServerToolCall):
        args = thaw(part.input)
        if not isinstance(args, (str, dict, type(None))):
            writing.lose("arguments that are neither object nor text become JSON text", ".input")
            args = dumps(args).decode("utf-8")
        return {**item, "part_kind": "builtin-tool-call", "args": args}
    outcome = "failed" if part.is_error else "success"
    content = thaw(part.content)
    return {**item, "part_kind": "builtin-tool-return", "content": content, "outcome": outcome}
