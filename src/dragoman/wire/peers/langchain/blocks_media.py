"""Content blocks of media, citations, and blocks in a provider's own form."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from dragoman.errors import DragomanError
from dragoman.model.content import AnyPart
from dragoman.model.media import Audio, File, Image, Media, Video
from dragoman.model.parts import Citation
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
