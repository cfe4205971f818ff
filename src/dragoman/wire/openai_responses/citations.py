"""Annotations of a text: the sources it cites."""

from __future__ import annotations

from typing import Any

from dragoman.model.frozen import EMPTY, FrozenDict, freeze_mapping
from dragoman.model.parts import Citation
from dragoman.wire.openai_responses.forms import NAME
from dragoman.wire.overlay import overlay

_URL = "url_citation"
_TITLE_KEYS = {
    _URL: "title",
    "file_citation": "filename",
    "container_file_citation": "filename",
    "file_path": "filename",
}


def decode_annotations(wire: Any) -> tuple[Citation, ...]:
    """The citations; none where one of them can't be understood, so that all stay together."""
    if not isinstance(wire, list):
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
        url=_taken(optional, "url", str),
        title=_taken(optional, _TITLE_KEYS.get(kind, "title"), str),
        start=_taken(optional, "start_index", int),
        end=_taken(optional, "end_index", int),
        extras=_kept(optional, is_known=kind in _TITLE_KEYS),
    )


def _taken(optional: dict[str, Any], key: str, kind: type) -> Any:
    return optional.pop(key) if type(optional.get(key)) is kind else None


def _kept(optional: dict[str, Any], *, is_known: bool) -> FrozenDict:
    # A kind that only this dialect knows has an overlay, if an empty one: it is no stranger here.
    if is_known and not optional:
        return EMPTY
    return FrozenDict({NAME: freeze_mapping(optional, "the wire")})


def encode_citation(citation: Citation) -> dict[str, Any] | None:
    """The annotation of a citation; None where the wire has no such kind."""
    known = citation.kind in _TITLE_KEYS or NAME in citation.extras
    if not known:
        return _encode_address(citation)
    fields = {
        "url": citation.url,
        _TITLE_KEYS.get(citation.kind, "title"): citation.title,
        "start_index": citation.start,
        "end_index": citation.end,
    }
    body = {
        "type": citation.kind,
        **{key: fields[key] for key in fields if fields[key] is not None},
    }
    return {**overlay(citation.extras, NAME), **body}


def _encode_address(citation: Citation) -> dict[str, Any] | None:
    """Another dialect's citation, as far as it has an address."""
    if citation.url is None:
        return None
    return {
        "type": _URL,
        "url": citation.url,
        "title": citation.title or citation.url,
        "start_index": citation.start or 0,
        "end_index": citation.end or 0,
    }
