"""Content of message items and tool outputs: text, refusals, media and citations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY, FrozenDict, freeze_mapping
from dragoman.model.media import Audio, File, Image, audio_mime
from dragoman.model.parts import CacheHint, Citation, Opaque, Part, Refusal, Text
from dragoman.wire.foreign_extras import foreign_fields
from dragoman.wire.openai_responses.content_forms import (
    CONTINUES,
    ITEM,
    Item,
    decode_form,
    encode_form,
    formed,
    present,
    taken,
    without,
)
from dragoman.wire.openai_responses.dialect import NAME, ORIGIN
from dragoman.wire.overlay import fields_of, spelled
from dragoman.wire.tolerance import bare_text, with_original
from dragoman.wire.writing import Writing

NOT_SUPPORTED = "not supported by this dialect"

# --- citations: the annotations of a text

_URL = "url_citation"
_TITLE_KEYS = {
    _URL: "title",
    "file_citation": "filename",
    "container_file_citation": "filename",
    "file_path": "filename",
}


def decode_annotations(wire: Any) -> tuple[Citation, ...]:
    """Decode annotations; empty if any is unknown, so that all stay together."""
    if not wire or not isinstance(wire, list):
        return ()
    citations = [_decode_annotation(annotation) for annotation in wire]
    return tuple(found for found in citations if found) if all(citations) else ()


def _decode_annotation(wire: Any) -> Citation | None:
    if not isinstance(wire, dict) or type(wire.get("type")) is not str:
        return None
    optional: dict[str, Any] = dict(wire)
    kind = optional.pop("type")
    return Citation(
        kind=kind,
        url=taken(optional, "url", str),
        title=taken(optional, _TITLE_KEYS.get(kind, "title"), str),
        start=taken(optional, "start_index", int),
        end=taken(optional, "end_index", int),
        extras=_kept(optional, is_known=kind in _TITLE_KEYS),
    )


def _kept(optional: dict[str, Any], *, is_known: bool) -> FrozenDict:
    # An overlay, even if empty, marks kinds that only this dialect has as its own.
    if is_known and not optional:
        return EMPTY
    return FrozenDict({NAME: freeze_mapping(optional, "the wire")})


def encode_citation(citation: Citation) -> dict[str, Any] | None:
    """Encode a citation as an annotation; None if it is not supported."""
    known = citation.kind in _TITLE_KEYS or NAME in citation.extras
    if not known:
        return _encode_address(citation)
    fields = {
        "url": citation.url,
        _TITLE_KEYS.get(citation.kind, "title"): citation.title,
        "start_index": citation.start,
        "end_index": citation.end,
    }
    return {**fields_of(citation.extras, NAME), "type": citation.kind, **present(fields)}


def _encode_address(citation: Citation) -> dict[str, Any] | None:
    """Encode another dialect's citation; None if it has no URL."""
    if citation.url is None:
        return None
    return {
        "type": _URL,
        "url": citation.url,
        "title": citation.title or citation.url,
        "start_index": citation.start or 0,
        "end_index": citation.end or 0,
    }


def lose_citations(text: Text, writing: Writing) -> None:
    """Report the citations, or fields of them, that annotations can't hold as lost."""
    for number, citation in enumerate(text.citations):
        if encode_citation(citation) is None:
            writing.lose_here(NOT_SUPPORTED, ".citations")
            continue
        if citation.quote is not None:
            writing.lose_here(NOT_SUPPORTED, f".citations[{number}].quote")
        for source, _ in foreign_fields(citation.extras, NAME):
            writing.lose_here(f"only supported by {source}", f".citations[{number}].extras")


# --- cache hints: breakpoints of the prompt cache

_KEY = "prompt_cache_breakpoint"
_TTLS = frozenset({"30m", "12h"})


def decode_cache(optional: dict[str, Any]) -> CacheHint | None:
    """Remove the cache hint from the optional fields and decode it; an unknown one stays."""
    wire = optional.get(_KEY)
    if not isinstance(wire, dict) or wire.get("mode") != "explicit":
        return None
    ttl = wire.get("ttl")
    if wire.keys() - {"mode", "ttl"} or ("ttl" in wire and not (type(ttl) is str and ttl in _TTLS)):
        return None
    del optional[_KEY]
    return CacheHint(ttl)


def loses_ttl(part: Part, body: Mapping[str, Any]) -> bool:
    """Whether a part was encoded with its cache hint, but without its unsupported TTL."""
    return part.cache is not None and _KEY in body and part.cache.ttl not in {None, *_TTLS}


def encode_cache(part: Part, body: dict[str, Any]) -> dict[str, Any]:
    """Add the cache hint of a part to its body; an unsupported TTL is left out."""
    if part.cache is not None:
        ttl = part.cache.ttl
        body[_KEY] = {"mode": "explicit", "ttl": ttl} if ttl in _TTLS else {"mode": "explicit"}
    return body


# --- images, files and audio: a data URL, a URL, or an uploaded file's id

_DATA, _BASE64 = "data:", ";base64"
_MEDIA: dict[str, tuple[type[Image | File], tuple[str, ...]]] = {
    "input_image": (Image, ("image_url", "file_id")),
    "input_file": (File, ("file_data", "file_url", "file_id")),
}
_UNNAMED = {"filename": "file"}
_AUTO = {"detail": "auto"}  # required by the types


def _split(url: str) -> tuple[str | None, str | None]:
    """MIME type and base64 of a data URL that we would encode the same way, else None."""
    if not url.startswith(_DATA):
        return None, None
    header, comma, data = url.partition(",")
    mime = header[len(_DATA) : -len(_BASE64)]
    if not comma or not header.endswith(_BASE64) or not mime or ";" in mime:
        return None, None
    return mime, data


def _decode_source(key: str, source: Any) -> dict[str, Any] | None:
    """Decode a source to fields of `Media`; None if we could not encode it the same way."""
    if type(source) is not str:
        return None
    if key == "file_id":
        return {"file_id": source, "origin": ORIGIN}
    mime, data = (None, None) if key == "file_url" else _split(source)
    if data is not None:
        return {"data": data, "mime": mime}
    if key != "file_data":
        return {"url": source}
    return None if source.startswith(_DATA) else {"data": source}  # base64 without a header


def decode_media_part(wire: dict[str, Any], item_id: str | None) -> Image | File | None:
    """Decode an `input_image` or `input_file` part; None unless it has exactly one source."""
    kind, keys = _MEDIA[wire["type"]]
    given = [key for key in keys if wire.get(key) is not None]
    fields = _decode_source(given[0], wire[given[0]]) if len(given) == 1 else None
    if fields is None:
        return None
    optional = without(wire, "type", given[0])
    if kind is File:
        fields["name"] = taken(optional, "filename", str)
    fields["detail"] = taken(optional, "detail", str)
    usual = _usual(kind, fields["detail"], fields.get("name"), fields.get("data"))
    cache = decode_cache(optional)
    return kind(**fields, item_id=item_id, cache=cache, extras=decode_form(optional, usual))


def encode_media_part(part: Image | File) -> dict[str, Any]:
    """Encode an image or file part; inline file data requires a file name."""
    is_image = isinstance(part, Image)
    body: dict[str, Any] = {"type": "input_image" if is_image else "input_file"}
    if part.file_id is not None:
        body["file_id"] = part.file_id
    elif is_image:
        body["image_url"] = part.data_url
    elif part.url is not None:
        body["file_url"] = part.url
    else:
        body["file_data"] = part.data if part.mime is None else part.data_url
    if part.name is not None and not is_image:
        body["filename"] = part.name
    if part.detail is not None:
        body["detail"] = part.detail
    formed(body, part.extras, _usual(type(part), part.detail, part.name, part.data))
    return encode_cache(part, body)


def _usual(
    kind: type[Image | File], detail: str | None, name: str | None, data: str | None
) -> Mapping[str, Any]:
    if kind is Image:
        return _AUTO if detail is None else EMPTY
    return _UNNAMED if data is not None and name is None else EMPTY


def decode_audio(wire: dict[str, Any], item_id: str | None) -> Audio | None:
    """Decode an `input_audio` part; None if its data or format is invalid."""
    inner = wire.get("input_audio")
    if not isinstance(inner, dict) or inner.keys() != {"data", "format"}:
        return None
    data, audio_format = inner["data"], inner["format"]
    if type(data) is not str or type(audio_format) is not str:
        return None
    extras = decode_form(without(wire, "type", "input_audio"), EMPTY)
    audio = Audio(data=data, mime=audio_mime(audio_format), item_id=item_id, extras=extras)
    return audio if audio.format == audio_format else None


def encode_audio(audio: Audio) -> dict[str, Any]:
    """Encode an `input_audio` part."""
    inner = {"data": audio.data, "format": audio.format}
    return {"type": "input_audio", "input_audio": inner, **encode_form(audio.extras, EMPTY)}


# --- parts

_TEXT_TYPES = frozenset({"input_text", "output_text", "text"})
_NOTHING: Mapping[str, Any] = EMPTY
_NOT_CITING: Mapping[str, Any] = {"annotations": []}
_PART = "part"
_WHOLE = "$item"


def is_plain(part: Part) -> TypeGuard[Text]:
    """Whether a part is a text without any other fields, which may be sent as a string."""
    return (
        type(part) is Text
        and not part.extras
        and not part.citations
        and part.cache is None
        and part.item_id is None
    )


# --- input parts


def decode_inputs(content: list[Any], item_id: str | None) -> tuple[AnyPart, ...]:
    """Decode the parts of a user, system or developer message; the first has the item's id."""
    parts: list[AnyPart] = []
    for wire in content:
        if type(wire) is str:
            part = bare_text(wire, {"type": "input_text", "text": wire}, NAME)
            parts.append(part.replace(item_id=item_id))
        else:
            parts.append(decode_input(wire, item_id) or unknown_part(wire, item_id))
        item_id = None
    return tuple(parts)


def decode_input(wire: Any, item_id: str | None = None) -> Text | Image | File | Audio | None:
    """Decode a part of an input message or tool output; None if it is unknown."""
    if not isinstance(wire, dict) or type(kind := wire.get("type")) is not str:
        return None
    if kind in _TEXT_TYPES:
        return _decode_text(wire, "input_text", item_id)
    if kind in _MEDIA:
        return decode_media_part(wire, item_id)
    return decode_audio(wire, item_id) if kind == "input_audio" else None


def encode_input(part: Part) -> dict[str, Any] | None:
    """Encode a part of an input message or tool output; None if it is not supported."""
    if isinstance(part, Text):
        body = encode_cache(part, _encode_text(part, "input_text", _NOTHING))
        return spelled(body, part.extras, NAME)
    if isinstance(part, (Image, File)):
        return encode_media_part(part)
    if isinstance(part, Audio) and part.data is not None:
        return encode_audio(part)
    if isinstance(part, Refusal):
        return {"type": "input_text", "text": part.text}
    return None


# --- output parts


def decode_output_parts(content: list[Any], item_id: str | None, item: Item) -> list[AnyPart]:
    """Decode the parts of an assistant message; the first carries the form of its item."""
    usual = _NOTHING if item_id is None else _NOT_CITING
    parts: list[AnyPart] = []
    for wire in content:
        part = _decode_output_part(wire, item_id, usual, item)
        parts.append(part or unknown_part(wire, item_id, item))
        item = CONTINUES if item_id is None else None
    return parts


def _decode_output_part(
    wire: Any, item_id: str | None, usual: Mapping[str, Any], item: Item
) -> AnyPart | None:
    if not isinstance(wire, dict) or ITEM in wire:
        return None
    kind = wire.get("type")
    if "type" not in wire and (made := _likely_type(wire)) is not None:
        part = _decode_output_part({**wire, "type": made}, item_id, usual, item)
        return None if part is None else with_original(part, NAME, [[["type"], made]])
    if type(kind) is not str:
        return None
    if kind in _TEXT_TYPES:
        return _decode_text(wire, "output_text", item_id, usual, item)
    if kind == "refusal" and type(words := wire.get("refusal")) is str:
        extras = decode_form(without(wire, "type", "refusal"), _NOTHING, item)
        return Refusal(words, item_id=item_id, extras=extras)
    return None


def _likely_type(wire: dict[str, Any]) -> str | None:
    """The type of an assistant's part that says none."""
    if type(wire.get("text")) is str:
        return "output_text"
    return "refusal" if type(wire.get("refusal")) is str else None


def encode_output_part(part: Part, *, has_id: bool) -> dict[str, Any] | None:
    """Encode a part of an assistant message; None if it is not supported (W30)."""
    if isinstance(part, Text):
        return _encode_text(part, "output_text", _NOT_CITING if has_id else _NOTHING)
    if isinstance(part, Refusal):
        body = {"type": "refusal", "refusal": part.text, **encode_form(part.extras, _NOTHING)}
        body.pop(ITEM, None)
        return spelled(body, part.extras, NAME)
    return None


# --- text


def _decode_text(
    wire: dict[str, Any],
    own_type: str,
    item_id: str | None,
    usual: Mapping[str, Any] = _NOTHING,
    item: Item = None,
) -> Text | None:
    optional = dict(wire)
    text = optional.pop("text", None)
    if type(text) is not str or ITEM in wire:
        return None
    if wire["type"] == own_type:
        del optional["type"]
    citations = decode_annotations(optional.get("annotations"))
    if citations:
        del optional["annotations"]
        usual = _NOTHING
    cache = decode_cache(optional) if own_type == "input_text" else None
    extras = decode_form(optional, usual, item)
    return Text(text, citations, item_id=item_id, cache=cache, extras=extras)


def _encode_text(part: Text, own_type: str, usual: Mapping[str, Any]) -> dict[str, Any]:
    body = {"type": own_type, "text": part.text, **encode_form(part.extras, usual)}
    body.pop(ITEM, None)
    if part.citations:
        annotations = [encode_citation(citation) for citation in part.citations]
        body["annotations"] = [found for found in annotations if found is not None]
    return spelled(body, part.extras, NAME) if part.extras else body


# --- unknown parts and items


def unknown_part(wire: Any, item_id: str | None = None, item: Item = None) -> Opaque:
    """Wrap an unknown part: a bare payload would be a separate item."""
    extras = EMPTY if item is None else decode_form(_NOTHING, _NOTHING, item)
    return Opaque(NAME, {_PART: wire}, item_id=item_id, origin=ORIGIN, extras=extras)


def is_unknown_part(payload: Any) -> bool:
    """Whether an opaque payload is a content part."""
    return isinstance(payload, Mapping) and payload.keys() == {_PART}


def opaque_item(item: Any) -> Any:
    """The payload of an unknown item; wrapped if it looks like a part."""
    return {_WHOLE: item} if is_unknown_part(item) else item


def encode_opaque_item(payload: Any) -> Any:
    """Restore the original item."""
    is_wrapped = isinstance(payload, Mapping) and payload.keys() == {_WHOLE}
    return payload[_WHOLE] if is_wrapped else payload


def encode_unknown_part(part: Opaque) -> Any:
    """Restore the original part."""
    return part.payload[_PART]
