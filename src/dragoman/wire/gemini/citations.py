"""Sources: `groundingMetadata` and `citationMetadata` stand beside the text that leans on them.

A grounding support names a stretch of the text and the chunks behind it: each such pair is a
citation of the text part. What the metadata holds beyond that stays with the choice. Offsets
count bytes of UTF-8, as the API does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.parts import Citation, Text
from dragoman.wire.gemini.trace import is_array, is_object

_SOURCE_KINDS = {"citationSources": "citation_source", "citations": "citation"}
_SOURCE_KEYS = {kind: key for key, kind in _SOURCE_KINDS.items()}
_CHUNK_KINDS = ("web", "retrievedContext", "maps", "image")
_Source = tuple[str, str | None, str | None]
"""What a chunk says of a source: its kind, address and title."""


def decode_citations(candidate: dict[str, Any], parts: tuple[AnyPart, ...]) -> tuple[AnyPart, ...]:
    """The parts, with the citations that a candidate's metadata gives their texts."""
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
    """A candidate's metadata, as far as its texts' citations say."""
    metadata: dict[str, Any] = {}
    home = _first_text(parts)
    chunks: dict[_Source, int] = {}
    supports: list[dict[str, Any]] = []
    for index, part in enumerate(parts):
        if type(part) is Text:
            for citation in part.citations:
                if (key := _SOURCE_KEYS.get(citation.kind)) is not None:
                    sources = metadata.setdefault("citationMetadata", {})
                    sources.setdefault(key, []).append(_encode_source(citation))
                else:
                    place = None if index == home else index
                    kind = citation.kind if citation.kind in _CHUNK_KINDS else "web"
                    source = (kind, citation.url, citation.title)
                    chunk = chunks.setdefault(source, len(chunks))
                    _add_support(supports, chunk, citation, place)
    if supports:
        sources = [_encode_chunk(source) for source in chunks]
        metadata["groundingMetadata"] = {"groundingChunks": sources, "groundingSupports": supports}
    return metadata


def _first_text(parts: tuple[AnyPart, ...]) -> int | None:
    return next((index for index, part in enumerate(parts) if type(part) is Text), None)


Cited = tuple[int | None, Citation]
"""A citation, and the index of the part it belongs to, if that is said."""


def _decode_grounding(wire: Any) -> Iterator[Cited]:
    if not is_object(wire):
        return
    chunks, supports = wire.get("groundingChunks"), wire.get("groundingSupports")
    for support in supports if is_array(supports) else ():
        if not is_object(support) or not is_object(segment := support.get("segment")):
            continue
        indices = support.get("groundingChunkIndices")
        for index in indices if is_array(indices) else ():
            if is_array(chunks) and type(index) is int and 0 <= index < len(chunks):
                citation = _decode_support(segment, chunks[index])
                if citation is not None:
                    yield _natural(segment.get("partIndex")), citation


def _decode_support(segment: dict[str, Any], chunk: Any) -> Citation | None:
    known = _CHUNK_KINDS if is_object(chunk) else ()
    kind = next((name for name in known if is_object(chunk.get(name))), None)
    if kind is None:
        return None
    return Citation(
        kind=kind,
        url=_text(chunk[kind].get("uri")),
        title=_text(chunk[kind].get("title")),
        quote=_text(segment.get("text")),
        start=_natural(segment.get("startIndex")),
        end=_natural(segment.get("endIndex")),
    )


def _encode_chunk(source: _Source) -> dict[str, Any]:
    kind, uri, title = source
    return {kind: _filled(uri=uri, title=title)}


def _add_support(
    supports: list[dict[str, Any]], chunk: int, citation: Citation, part: int | None
) -> None:
    """Note that a stretch of text leans on a chunk; one stretch may lean on several."""
    segment = _filled(
        partIndex=part, startIndex=citation.start, endIndex=citation.end, text=citation.quote
    )
    if supports and supports[-1]["segment"] == segment:
        supports[-1]["groundingChunkIndices"].append(chunk)
    else:
        supports.append({"segment": segment, "groundingChunkIndices": [chunk]})


def _decode_sources(wire: Any) -> Iterator[Cited]:
    if not is_object(wire):
        return
    for key, kind in _SOURCE_KINDS.items():
        sources = wire.get(key)
        for source in sources if is_array(sources) else ():
            if is_object(source):
                yield (
                    None,
                    Citation(
                        kind=kind,
                        url=_text(source.get("uri")),
                        title=_text(source.get("title")),
                        start=_natural(source.get("startIndex")),
                        end=_natural(source.get("endIndex")),
                    ),
                )


def _encode_source(citation: Citation) -> dict[str, Any]:
    return _filled(
        startIndex=citation.start, endIndex=citation.end, uri=citation.url, title=citation.title
    )


def _text(value: Any) -> str | None:
    return value if type(value) is str else None


def _natural(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _filled(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
