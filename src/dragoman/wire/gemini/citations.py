"""Citations: `groundingMetadata` and `citationMetadata`, outside the text that they refer to.

A grounding support names a segment of the text and its source chunks: each such pair is a citation
of the text part. A chunk without a support is a source of the whole text. All other metadata stays
with the choice. Offsets count UTF-8 bytes, as in the API.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.parts import Citation, Text
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.settings_table import text

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
