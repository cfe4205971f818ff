"""Media, inline as base64 (`inlineData`) or by URI (`fileData`), and citations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.media import Audio, File, Image, Media, Video
from dragoman.model.parts import Citation, Text
from dragoman.wire.gemini.dialect import NAME, keep_fields, snake_names
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.overlay import Overlay, words_of
from dragoman.wire.reading import Reading
from dragoman.wire.settings_table import text

AnyMedia = Image | Audio | Video | File

_NAMES = snake_names("mimeType", "fileUri", "displayName")
_TYPES: dict[str, type[AnyMedia]] = {"image": Image, "audio": Audio, "video": Video}
_FALLBACK_MIMES: dict[type[Media], str] = {
    Image: "image/png",
    Audio: "audio/wav",
    Video: "video/mp4",
}
_RESOLUTIONS = {
    "MEDIA_RESOLUTION_LOW": "low",
    "MEDIA_RESOLUTION_MEDIUM": "medium",
    "MEDIA_RESOLUTION_HIGH": "high",
    "MEDIA_RESOLUTION_ULTRA_HIGH": "ultra_high",
}
_RESOLUTION_OF = {detail: level for level, detail in _RESOLUTIONS.items()}
NEAREST_DETAIL = {"original": "ultra_high"}
"""Details of other APIs, and the nearest one here."""
_URL_SAFE = "url-safe"
"""The note for URL-safe base64: google-genai sends it, and no other API accepts it."""
_FROM_URL_SAFE, _TO_URL_SAFE = str.maketrans("-_", "+/"), str.maketrans("+/", "-_")


def decode_media(fields: dict[str, Any], kept: Overlay, reading: Reading) -> AnyMedia | None:
    """Decode the media in a part; None if it is malformed."""
    kind = "inlineData" if fields.get("inlineData") is not None else "fileData"
    if not is_object(fields[kind]):
        return None
    blob = kept.renamed(fields[kind], _NAMES, kind)
    source, field = ("data", "data") if kind == "inlineData" else ("fileUri", "url")
    if type(blob.get(source)) is not str:
        return None
    if kind == "inlineData" and _is_url_safe(blob["data"]):
        blob = {**blob, "data": blob["data"].translate(_FROM_URL_SAFE)}
        kept.note("words", [_URL_SAFE])
    mime, detail = text(blob.get("mimeType")), _decode_resolution(fields.get("mediaResolution"))
    content: dict[str, Any] = {field: blob[source], "mime": mime, "detail": detail}
    taken = [kind] if detail is None else [kind, "mediaResolution"]
    kind_of_media = _media_type(mime, is_video="videoMetadata" in fields)
    part = kind_of_media(name=text(blob.get("displayName")), **content)
    kept.compare(blob, _encode_blob(part)[kind], kind)
    signature = keep_fields(kept, fields, *taken)
    if signature is not None:
        part = part.replace(signature=signature, origin=reading.origin)
    extras = kept.extras()
    return part.replace(extras=extras) if extras else part


def encode_media(part: AnyMedia) -> dict[str, Any] | None:
    """Encode the data field of media; None for a file uploaded to another provider."""
    if _is_elsewhere(part):
        return None
    body = _encode_blob(part)
    detail = part.detail or ""
    if (level := _RESOLUTION_OF.get(NEAREST_DETAIL.get(detail, detail))) is not None:
        body["mediaResolution"] = {"level": level}
    return body


def media_problem(part: AnyMedia) -> str | None:
    """The reason media can't be encoded in full, or None."""
    if _is_elsewhere(part):
        return "a file uploaded to another provider is left out"
    if part.detail not in {None, "auto", *_RESOLUTION_OF, *NEAREST_DETAIL}:
        return "this image detail is not supported"
    if isinstance(part, Audio) and part.transcript:
        return "transcripts are not supported; only the audio is sent"
    return None


def _is_url_safe(data: str) -> bool:
    return ("-" in data or "_" in data) and "+" not in data and "/" not in data


def _is_elsewhere(part: AnyMedia) -> bool:
    return part.file_id is not None and not part.file_id.startswith("files/")


def _encode_blob(part: AnyMedia) -> dict[str, Any]:
    blob = _filled(mimeType=part.mime, displayName=part.name)
    if part.data is None:
        blob["fileUri"] = part.url if part.url is not None else _file_uri(part.file_id or "")
        return {"fileData": blob}
    blob["data"] = part.data
    if _URL_SAFE in words_of(part.extras, NAME):
        blob["data"] = part.data.translate(_TO_URL_SAFE)
    blob.setdefault("mimeType", _FALLBACK_MIMES.get(type(part), "application/octet-stream"))
    return {"inlineData": blob}


def _decode_resolution(wire: Any) -> str | None:
    if not is_object(wire) or len(wire) != 1 or type(level := wire.get("level")) is not str:
        return None
    return _RESOLUTIONS.get(level)


def _media_type(mime: str | None, *, is_video: bool) -> type[AnyMedia]:
    if mime is None:
        return Video if is_video else File
    return _TYPES.get(mime.partition("/")[0], File)


def _file_uri(file_id: str) -> str:
    return f"https://generativelanguage.googleapis.com/v1beta/{file_id}"


# --- citations: `groundingMetadata` and `citationMetadata`, outside the text that they refer to
#
# A grounding support names a segment of the text and its source chunks: each such pair is a
# citation of the text part. A chunk without a support is a source of the whole text. All other
# metadata stays with the choice. Offsets count UTF-8 bytes, as in the API.

_SOURCE_KINDS = {"citationSources": "citation_source", "citations": "citation"}
_SOURCE_KEYS = {kind: key for key, kind in _SOURCE_KINDS.items()}
_NOWHERE = (None, None, None, None)
_CHUNK_KINDS = ("web", "retrievedContext", "maps", "image")


def decode_citations(candidate: dict[str, Any], parts: tuple[AnyPart, ...]) -> tuple[AnyPart, ...]:
    """Add the citations in a candidate's metadata to its text parts."""
    cited = [*_decode_grounding(candidate.get("groundingMetadata"))]
    cited += _decode_sources(candidate.get("citationMetadata"))
    if not cited:
        return parts
    home = _first_text(parts)
    by_part: dict[int, list[Citation]] = {}
    for index, citation in cited:
        is_text = index is not None and index < len(parts) and type(parts[index]) is Text
        place = index if is_text else home
        if place is not None:
            by_part.setdefault(place, []).append(citation)
    return tuple(
        part.replace(citations=tuple(by_part[i])) if i in by_part else part
        for i, part in enumerate(parts)
    )


def encode_citations(parts: tuple[AnyPart, ...]) -> dict[str, Any]:
    """Encode the citations of texts as candidate metadata."""
    cited = [(n, part) for n, part in enumerate(parts) if type(part) is Text and part.citations]
    if not cited:
        return {}
    metadata: dict[str, Any] = {}
    home = _first_text(parts)
    chunks: dict[tuple[str, str | None, str | None], int] = {}
    supports: list[dict[str, Any]] = []
    for index, part in cited:
        for citation in part.citations:
            if (key := _SOURCE_KEYS.get(citation.kind)) is not None:
                sources = metadata.setdefault("citationMetadata", {})
                sources.setdefault(key, []).append(_encode_source(citation))
            else:
                place = None if index == home else index
                kind = citation.kind if citation.kind in _CHUNK_KINDS else "web"
                source = (kind, citation.url, citation.title)
                chunk = chunks.setdefault(source, len(chunks))
                if (place, citation.start, citation.end, citation.quote) != _NOWHERE:
                    _add_support(supports, chunk, citation, place)
    if chunks:
        sources = [{kind: _filled(uri=uri, title=title)} for kind, uri, title in chunks]
        metadata["groundingMetadata"] = {"groundingChunks": sources}
    if supports:
        metadata["groundingMetadata"]["groundingSupports"] = supports
    return metadata


def _first_text(parts: tuple[AnyPart, ...]) -> int | None:
    return next((index for index, part in enumerate(parts) if type(part) is Text), None)


Cited = tuple[int | None, Citation]
"""A citation, and the index of the part it belongs to, if known."""


def _decode_grounding(wire: Any) -> Iterator[Cited]:
    if not is_object(wire):
        return
    chunks = _listed(wire, "groundingChunks")
    unnamed = dict.fromkeys(range(len(chunks)))
    for support in _listed(wire, "groundingSupports"):
        if not is_object(support) or not is_object(segment := support.get("segment")):
            continue
        for index in _listed(support, "groundingChunkIndices"):
            if type(index) is int and 0 <= index < len(chunks):
                unnamed.pop(index, None)
                for citation in _decode_chunk(chunks[index], segment):
                    yield _natural(segment.get("partIndex")), citation
    for index in unnamed:
        for citation in _decode_chunk(chunks[index], {}):
            yield None, citation


def _decode_chunk(chunk: Any, segment: dict[str, Any]) -> Iterator[Citation]:
    """Decode the source in a chunk; empty if it is of an unknown kind."""
    kinds = [kind for kind in _CHUNK_KINDS if is_object(chunk) and is_object(chunk.get(kind))]
    for kind in kinds[:1]:
        yield _decode_source(kind, chunk[kind], segment)


def _decode_sources(wire: Any) -> Iterator[Cited]:
    for key, kind in _SOURCE_KINDS.items() if is_object(wire) else ():
        for source in _listed(wire, key):
            if is_object(source):
                yield None, _decode_source(kind, source, source)


def _decode_source(kind: str, source: dict[str, Any], segment: dict[str, Any]) -> Citation:
    """The citation of a source for a segment of text."""
    return Citation(
        kind=kind,
        url=text(source.get("uri")),
        title=text(source.get("title")),
        quote=text(segment.get("text")),
        start=_natural(segment.get("startIndex")),
        end=_natural(segment.get("endIndex")),
    )


def _add_support(
    supports: list[dict[str, Any]], chunk: int, citation: Citation, part: int | None
) -> None:
    """Add a chunk as a source of a text segment, which may have several."""
    segment = _filled(
        partIndex=part, startIndex=citation.start, endIndex=citation.end, text=citation.quote
    )
    if supports and supports[-1]["segment"] == segment:
        supports[-1]["groundingChunkIndices"].append(chunk)
    else:
        supports.append({"segment": segment, "groundingChunkIndices": [chunk]})


def _encode_source(citation: Citation) -> dict[str, Any]:
    return _filled(
        startIndex=citation.start, endIndex=citation.end, uri=citation.url, title=citation.title
    )


def _listed(wire: dict[str, Any], key: str) -> list[Any]:
    found = wire.get(key)
    return found if is_list(found) else []


def _natural(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _filled(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
