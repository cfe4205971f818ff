"""Content blocks: LangChain's standard blocks; those of providers are decoded by their dialects."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman.errors import DragomanError
from dragoman.interop.peers.kept_fields import Given as Block
from dragoman.interop.peers.kept_fields import Keeper, mapping_at, text_at
from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY, thaw
from dragoman.model.media import Audio, File, Image, Media, Video
from dragoman.model.parts import (
    CacheHint,
    Citation,
    Opaque,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.tools import ResultPart, ToolCall, make_call
from dragoman.wire.dialect import dialect

_KINDS: dict[str, type[Image | Audio | Video | File]] = {
    "image": Image,
    "audio": Audio,
    "video": Video,
    "file": File,
    "text-plain": File,
}
_NAMES: dict[type[Media], str] = {Image: "image", Audio: "audio", Video: "video", File: "file"}
_SOURCES = {"base64": "data", "url": "url", "id": "id"}


def decode_media(block: Mapping[str, Any]) -> Image | Audio | Video | File | None:
    """The media in a standard block; None if it is another kind of block."""
    kind = block.get("type")
    made = _KINDS.get(kind) if isinstance(kind, str) else None
    if made is None:
        return None
    source = _source(block)
    if source is None:
        return None
    mime, extras = block.get("mime_type"), block.get("extras")
    about = extras if isinstance(extras, Mapping) else {}
    fields = {"mime": mime, "name": about.get("filename"), "detail": about.get("detail")}
    if made is Audio:
        fields["transcript"] = about.get("transcript")
    texts: dict[str, Any] = {key: text for key, text in fields.items() if isinstance(text, str)}
    return made(**source, **texts)


def _source(block: Mapping[str, Any]) -> dict[str, Any] | None:
    old = block.get("source_type")
    if isinstance(old, str):
        found = block.get(_SOURCES.get(old, old))
        key = {"base64": "data", "url": "url", "id": "file_id"}.get(old)
        return {key: found} if key is not None and isinstance(found, str) else None
    if block.get("type") == "text-plain" and isinstance(text := block.get("text"), str):
        return {"data": b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")}
    given = {"data": block.get("base64"), "url": block.get("url"), "file_id": block.get("file_id")}
    texts = {key: text for key, text in given.items() if isinstance(text, str)}
    return texts if len(texts) == 1 else None


def encode_media(part: Media) -> dict[str, Any]:
    """The standard block for media."""
    block: dict[str, Any] = {"type": _NAMES[type(part)]}
    sources = {"base64": part.data, "url": part.url, "file_id": part.file_id}
    block.update({key: text for key, text in sources.items() if text is not None})
    if part.mime is not None:
        block["mime_type"] = part.mime
    about = {"filename": part.name, "detail": part.detail}
    if isinstance(part, Audio):
        about["transcript"] = part.transcript
    extras = {key: text for key, text in about.items() if text is not None}
    if extras:
        block["extras"] = extras
    return block


# --- citations: standard annotations of text blocks; those of providers are kept unchanged

_ANNOTATION = "langchain annotation"
_STANDARD = "citation"
_FIELDS = {"url": "url", "title": "title", "cited_text": "quote"}
_PLACES = {"start_index": "start", "end_index": "end"}


def decode_annotations(annotations: Any) -> tuple[Citation, ...] | None:
    """The citations of a text; None if they can't be decoded."""
    if not isinstance(annotations, list):
        return None
    if not all(isinstance(annotation, Mapping) for annotation in annotations):
        return None
    return tuple([_decode(annotation) for annotation in annotations])


def _decode(annotation: Mapping[str, Any]) -> Citation:
    citation = _read(annotation)
    if _write(citation) == annotation:
        return citation
    return citation.replace(extras={_ANNOTATION: {":given": dict(annotation)}})


def _read(annotation: Mapping[str, Any]) -> Citation:
    kind, about = annotation.get("type"), annotation.get("extras")
    own = about.get("kind") if isinstance(about, Mapping) and kind == _STANDARD else None
    texts = {ours: annotation.get(theirs) for theirs, ours in _FIELDS.items()}
    places = {ours: annotation.get(theirs) for theirs, ours in _PLACES.items()}
    fields: dict[str, Any] = {key: text for key, text in texts.items() if isinstance(text, str)}
    fields |= {key: place for key, place in places.items() if type(place) is int}
    named = own if isinstance(own, str) else kind if isinstance(kind, str) else _STANDARD
    return Citation(kind=named, **fields)


def encode_citation(citation: Citation) -> dict[str, Any]:
    """The annotation for a citation."""
    kept = citation.extras.get(_ANNOTATION)
    given = kept.get(":given") if isinstance(kept, Mapping) else None
    if isinstance(given, Mapping) and _read(given) == citation:
        return dict(given)
    return _write(citation)


def _write(citation: Citation) -> dict[str, Any]:
    block: dict[str, Any] = {"type": _STANDARD}
    for theirs, ours in (_FIELDS | _PLACES).items():
        value = getattr(citation, ours)
        if value is not None:
            block[theirs] = value
    if citation.kind != _STANDARD:
        block["extras"] = {"kind": citation.kind}
    return block


# --- providers' own content blocks, which integrations pass through, decoded by their dialect
#
# An Anthropic `tool_use`, a Responses `reasoning` item, an OpenAI `image_url`: the parts are the
# same as if they had come over that wire, so opaque state can be sent back there.

_ANTHROPIC = frozenset({"thinking", "redacted_thinking", "tool_use", "server_tool_use",
                        "mcp_tool_use", "document", "search_result", "container_upload",
                        "tool_reference", "compaction"})  # fmt: skip
_CHAT = frozenset({"image_url", "input_audio", "refusal", "video_url"})
_ITEMS = frozenset({"reasoning", "web_search_call", "file_search_call", "code_interpreter_call",
                    "image_generation_call", "computer_call", "mcp_call", "mcp_list_tools",
                    "mcp_approval_request", "local_shell_call", "shell_call", "function_call",
                    "custom_tool_call", "apply_patch_call", "tool_search_call",
                    "tool_search_output"})  # fmt: skip
_ITEM_PARTS = frozenset({"output_text", "input_text", "input_image", "input_file"})


def dialect_of_block(block: Mapping[str, Any]) -> str | None:
    """The dialect of a block; None if it is unknown."""
    kind = block.get("type")
    if not isinstance(kind, str):
        return None
    is_cited = kind == "text" and isinstance(block.get("citations"), list)
    if kind in _ANTHROPIC or kind.endswith("_tool_result") or _has(block, "source") or is_cited:
        return "anthropic"
    if kind in _CHAT or (kind in {"file", "audio"} and _has(block, kind)):
        return "openai-chat"
    return "openai-responses" if kind in _ITEMS | _ITEM_PARTS else None


def _has(block: Mapping[str, Any], field: str) -> bool:
    return isinstance(block.get(field), Mapping)


def decode_native(block: Mapping[str, Any], *, is_answer: bool) -> list[AnyPart] | None:
    """The parts in a provider's own block; None if no dialect can decode it."""
    name = dialect_of_block(block)
    if name is None:
        return None
    # A block from a stream keeps its index, and the chunks of its arguments.
    wire = {key: block[key] for key in block if key not in {"index", "partial_json"}}
    try:
        request = dialect(name).decode_request(_body(name, wire, is_answer=is_answer))
    except DragomanError:
        return None
    return [part for message in request.messages for part in message.parts] or None


def _body(name: str, wire: dict[str, Any], *, is_answer: bool) -> dict[str, Any]:
    role = "assistant" if is_answer else "user"
    if name == "openai-responses" and wire.get("type") in _ITEMS:
        return {"input": [wire]}
    message = {"role": role, "content": [wire]}
    field = dialect(name).messages_field
    return {field: [{"type": "message", **message} if field == "input" else message]}


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
