"""Citations: each has one or more sources, where ours has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.model.parts import Citation
from dragoman.wire.peers.pydantic_ai.spelling import mapping_at, text_at

_KEPT = "pydantic-ai citation"


def decode_citations(given: Any) -> tuple[Citation, ...]:
    """A citation for each source; the first of those that belong together keeps what was given."""
    found: list[Citation] = []
    for item in given if isinstance(given, list) else ():
        if isinstance(item, Mapping):
            first, *others = _read(item)
            if _write(first) != item or others:
                kept = {":given": dict(item)}
                first = first.replace(extras={_KEPT: kept})
            found += [first, *others]
    return tuple(found)


def _read(item: Mapping[str, Any]) -> list[Citation]:
    sources, anchor = item.get("sources"), mapping_at(item, "anchor")
    start, end = anchor.get("start"), anchor.get("end")
    place: dict[str, Any] = (
        {"start": start, "end": end} if type(start) is int and type(end) is int else {}
    )
    listed = sources if isinstance(sources, list) and sources else [{}]
    return [_read_source(source, place) for source in listed if isinstance(source, Mapping)] or [
        Citation(kind="web", **place)
    ]


def _read_source(source: Mapping[str, Any], place: dict[str, Any]) -> Citation:
    excerpts = source.get("excerpts")
    quote = excerpts[0] if isinstance(excerpts, list) and excerpts else None
    return Citation(
        kind=text_at(source, "kind") or "web",
        url=text_at(source, "url"),
        title=text_at(source, "title"),
        quote=quote if isinstance(quote, str) else None,
        **place,
    )


def encode_citations(citations: Sequence[Citation]) -> tuple[list[dict[str, Any]], int]:
    """The citations, and how many could not be written."""
    written: list[dict[str, Any]] = []
    lost = at = 0
    while at < len(citations):
        kept = citations[at].extras.get(_KEPT)
        given = kept.get(":given") if isinstance(kept, Mapping) else None
        again = _read(given) if isinstance(given, Mapping) else []
        if again and again == list(citations[at : at + len(again)]):
            written.append(dict(given))  # type: ignore[arg-type]  # a mapping, or nothing were read
            at += len(again)
            continue
        item = _write(citations[at])
        written += [] if item is None else [item]
        lost += item is None
        at += 1
    return written, lost


def _write(citation: Citation) -> dict[str, Any] | None:
    """A citation of one source; None where nothing says what was cited."""
    excerpts = [] if citation.quote is None else [citation.quote]
    source: dict[str, Any] = {"title": citation.title, "excerpts": excerpts}
    if citation.url is not None:
        source = {"url": citation.url, **source, "kind": "web"}
    elif citation.title or excerpts:
        source = {"document_id": None, **source, "kind": "document"}
    else:
        return None
    start, end = citation.start, citation.end
    anchor = None
    if start is not None and end is not None and 0 <= start < end:
        anchor = {"start": start, "end": end, "kind": "content"}
    return {"sources": [source], "anchor": anchor}
