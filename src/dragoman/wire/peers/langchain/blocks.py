"""Content blocks: LangChain's standard blocks; those of providers are decoded by their dialects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY, thaw
from dragoman.model.media import Audio, File, Image, Video
from dragoman.model.parts import (
    CacheHint,
    Opaque,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.tools import ResultPart, ToolCall, make_call
from dragoman.wire.peers.kept_fields import Given as Block
from dragoman.wire.peers.kept_fields import Keeper, mapping_at, text_at
from dragoman.wire.peers.langchain.blocks_media import (
    decode_annotations,
    decode_media,
    decode_native,
    encode_citation,
    encode_media,
)

KEEPER = Keeper("langchain")
FACTS = Keeper("langchain facts")
"""For LangChain's metadata of a message or a call."""
BARE = ":bare"
"""Kept for a text that was in the list itself, not in a block."""
_IN_RESULTS = (Text, Image, Audio, Video, File, Refusal, Opaque)
_OWN_IDS = "lc_"  # prefix of ids that LangChain generates for blocks without one


def decode_content(content: Any, *, is_answer: bool) -> list[AnyPart]:
    """The parts of a message's content: a text, or a list of texts and blocks."""
    if isinstance(content, str):
        return [Text(content)]
    items = content if isinstance(content, list) else [] if content is None else [content]
    return [part for item in items for part in decode_item(item, is_answer=is_answer)]


def decode_result_content(content: Any) -> str | tuple[ResultPart, ...]:
    """The content of a tool's result, which may contain only text and media."""
    if isinstance(content, str):
        return content
    items = content if isinstance(content, list) else [] if content is None else [content]
    parts: list[Any] = []
    for item in items:
        read = decode_item(item, is_answer=False)
        fits = all(isinstance(part, _IN_RESULTS) for part in read)
        parts += read if fits else [Opaque("langchain", item)]
    return tuple(parts)


def decode_item(item: Any, *, is_answer: bool) -> list[AnyPart]:
    """The parts of a text or block in a list of content."""
    if isinstance(item, str):
        return [Text(item, extras={KEEPER.name: {BARE: True}})]
    parts = read_item(item, is_answer=is_answer)
    ours = _encode_standard(parts[0]) if len(parts) == 1 else None
    if ours == item:
        return parts
    is_alike = isinstance(ours, dict) and ours.keys() <= item.keys()
    if ours is not None and is_alike and ours["type"] == item.get("type"):
        return [KEEPER.with_fields(parts[0], item, ours)]
    return KEEPER.keep_whole(parts, item)


def read_item(item: Any, *, is_answer: bool) -> list[AnyPart]:
    """The parts of a block, without kept fields."""
    if not isinstance(item, Mapping):
        return [Opaque("langchain", item)]
    kind = item.get("type")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    part = None if read is None else read(item)
    part = part or decode_media(item)
    if part is not None:
        return [part]
    native = item.get("value") if kind == "non_standard" else item
    found = decode_native(native, is_answer=is_answer) if isinstance(native, Mapping) else None
    return found or [Opaque("langchain", item)]


def encode_content(
    parts: Sequence[AnyPart],
    lose: Callable[[int, str], None],
    call_block: Callable[[ToolCall], Any] = lambda _call: None,
    *,
    is_answer: bool,
) -> str | list[Any]:
    """The content for these parts: a plain text if possible.

    `call_block` returns the block of a call that was in the content, or None.
    """
    blocks: list[Any] = []
    at = 0
    while at < len(parts):
        again = KEEPER.whole(parts, at, lambda item: read_item(item, is_answer=is_answer))
        if again is not None:
            blocks.append(again[0])
            at += again[1]
            continue
        part = parts[at]
        if isinstance(part, ToolCall):  # it is in `tool_calls`, and here only if it was before
            block = call_block(part)
            blocks += [] if block is None else [block]
        else:
            blocks += _encode_one(part, at, lose)
        at += 1
    if len(blocks) == 1 and _is_plain(blocks[0]):
        return str(blocks[0]["text"])
    return blocks or ""


def _is_plain(block: Any) -> bool:
    return isinstance(block, dict) and block.keys() == {"type", "text"} and block["type"] == "text"


def _encode_one(part: AnyPart, at: int, lose: Callable[[int, str], None]) -> list[Any]:
    if isinstance(part, Text) and KEEPER.fields(part.extras).get(BARE) and not part.citations:
        return [part.text]
    block = _encode_standard(part)
    if block is None:
        lose(at, "this kind of content is not supported in LangChain messages")
        return []
    if isinstance(part, Opaque) and part.dialect == "langchain":
        return [block]
    return [KEEPER.put_back(block, part.extras)]


# --- standard blocks


def _item_id(block: Block) -> str | None:
    """The provider's id of the item; ids generated by LangChain are useless to a provider."""
    found = text_at(block, "id")
    return None if found is None or found.startswith(_OWN_IDS) else found


def _cache(block: Block) -> CacheHint | None:
    control = mapping_at(block, "cache_control")
    if control.get("type") != "ephemeral":
        return None
    return CacheHint(text_at(control, "ttl"))


def _decode_text(block: Block) -> AnyPart | None:
    text = text_at(block, "text")
    if text is None or isinstance(block.get("citations"), list):
        return None  # the latter is an Anthropic block
    cited = decode_annotations(block.get("annotations", []))
    citations = () if cited is None else cited
    signed = text_at(mapping_at(block, "extras"), "signature")
    return Text(text, citations, item_id=_item_id(block), cache=_cache(block), signature=signed)


def _decode_reasoning(block: Block) -> AnyPart | None:
    text, about = text_at(block, "reasoning"), mapping_at(block, "extras")
    if text is None or "summary" in block:
        return None
    signature, sealed = text_at(about, "signature"), text_at(about, "encrypted_content")
    form: Any = "full" if sealed is None else "summary"
    return Thinking(text, sealed, form, signature=signature, item_id=_item_id(block))


def _decode_server_call(block: Block) -> AnyPart | None:
    name = text_at(block, "name")
    if name is None:
        return None
    return ServerToolCall(name, call_id=text_at(block, "id"), input=block.get("args"))


def _decode_server_result(block: Block) -> AnyPart | None:
    return ServerToolResult(
        text_at(mapping_at(block, "extras"), "name") or "",
        call_id=text_at(block, "tool_call_id"),
        content=block.get("output"),
        is_error=block.get("status") == "error",
    )


def _decode_call(block: Block) -> AnyPart | None:
    """A call in the content that is also in `tool_calls`."""
    name, args = text_at(block, "name"), block.get("args")
    if name is None:
        return None
    arguments: dict[str, Any] = {"raw": args} if isinstance(args, str) else {"input": args or EMPTY}
    if not isinstance(args, (str, Mapping, type(None))):
        return None
    return make_call(text_at(block, "id") or "", name, **arguments)


_READERS: dict[str, Callable[[Block], AnyPart | None]] = {
    "tool_call": _decode_call,
    "invalid_tool_call": _decode_call,
    "text": _decode_text,
    "reasoning": _decode_reasoning,
    "server_tool_call": _decode_server_call,
    "server_tool_result": _decode_server_result,
}


def _encode_standard(part: AnyPart) -> dict[str, Any] | None:
    """The standard block for a part; None if there is none."""
    write = _WRITERS.get(type(part))
    return None if write is None else write(part)


def _cached(block: dict[str, Any], cache: CacheHint | None) -> dict[str, Any]:
    if cache is not None:
        ttl = {} if cache.ttl is None else {"ttl": cache.ttl}
        block["cache_control"] = {"type": "ephemeral", **ttl}
    return block


def _encode_text(part: Text) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": part.text}
    if part.citations:
        block["annotations"] = [encode_citation(citation) for citation in part.citations]
    if part.item_id is not None:
        block["id"] = part.item_id
    if part.signature is not None:
        block["extras"] = {"signature": part.signature}
    return _cached(block, part.cache)


def _encode_thinking(part: Thinking) -> dict[str, Any]:
    if part.form == "redacted" and part.data is not None and part.item_id is None:
        native = {"type": "redacted_thinking", "data": part.data}  # Anthropic's; no standard form
        return {"type": "non_standard", "value": native}
    block: dict[str, Any] = {"type": "reasoning", "reasoning": part.text}
    if part.item_id is not None:
        block["id"] = part.item_id
    about = {"signature": part.signature, "encrypted_content": part.data}
    extras = {key: text for key, text in about.items() if text is not None}
    return {**block, "extras": extras} if extras else block


def _encode_media(part: Image | Audio | Video | File) -> dict[str, Any]:
    return _cached(encode_media(part), part.cache)


def _encode_refusal(part: Refusal) -> dict[str, Any]:
    return {"type": "refusal", "refusal": part.text}


def _encode_server_call(part: ServerToolCall) -> dict[str, Any]:
    block = {"type": "server_tool_call", "name": part.name, "args": thaw(part.input)}
    return block if part.call_id is None else {**block, "id": part.call_id}


def _encode_server_result(part: ServerToolResult) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "server_tool_result", "output": thaw(part.content)}
    block["status"] = "error" if part.is_error else "success"
    if part.call_id is not None:
        block["tool_call_id"] = part.call_id
    return {**block, "extras": {"name": part.name}} if part.name else block


def _encode_opaque(part: Opaque) -> Any:
    payload = thaw(part.payload)
    if part.dialect == "langchain":
        return payload
    return {"type": "non_standard", "value": payload} if isinstance(payload, dict) else None


_WRITERS: dict[type, Callable[[Any], Any]] = {
    Text: _encode_text,
    Thinking: _encode_thinking,
    Image: _encode_media,
    Audio: _encode_media,
    Video: _encode_media,
    File: _encode_media,
    Refusal: _encode_refusal,
    ServerToolCall: _encode_server_call,
    ServerToolResult: _encode_server_result,
    Opaque: _encode_opaque,
}
