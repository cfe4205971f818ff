"""Citations: standard annotations of text blocks, and providers' own, kept as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.parts import Citation

_ANNOTATION = "langchain annotation"
_STANDARD = "citation"
_FIELDS = {"url": "url", "title": "title", "cited_text": "quote"}
_PLACES = {"start_index": "start", "end_index": "end"}


def decode_annotations(annotations: Any) -> tuple[Citation, ...] | None:
    """The citations of a text; None where they can't be understood."""
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
