"""Citations: the annotations of a message."""

from __future__ import annotations

from typing import Any

from dragoman.model.parts import Citation
from dragoman.wire.openai_chat.spelling import extras_of, is_integer, is_list, is_object, laid

_URL = "url_citation"
_TEXTS = {"url": "url", "title": "title", "content": "quote"}
_PLACES = {"start_index": "start", "end_index": "end"}


def decode_annotations(wire: Any) -> tuple[Citation, ...]:
    """The citations in `annotations`; none where something else is there as well."""
    if not is_list(wire) or not all(map(is_object, wire)):
        return ()
    return tuple([_decode_annotation(annotation) for annotation in wire])


def _decode_annotation(wire: dict[str, Any]) -> Citation:
    kind, source = wire.get("type"), wire.get(_URL)
    if not isinstance(kind, str) or not kind or (kind == _URL and not is_object(source)):
        return Citation(kind="", extras=extras_of(wire))
    left = {key: value for key, value in wire.items() if key != "type"}
    if kind != _URL or not is_object(source):
        return Citation(kind=kind, extras=extras_of(left))
    fields: dict[str, Any] = {}
    odd: dict[str, Any] = {}
    for key, value in source.items():
        if key in _TEXTS and isinstance(value, str):
            fields[_TEXTS[key]] = value
        elif key in _PLACES and is_integer(value):
            fields[_PLACES[key]] = value
        else:
            odd[key] = value
    left = {**left, _URL: odd} if odd else {k: v for k, v in left.items() if k != _URL}
    return Citation(kind=kind, **fields, extras=extras_of(left))


def is_said_whole(citation: Citation) -> bool:
    """Whether the wire has all of a citation's fields: it has those of one kind only."""
    others = (*_TEXTS.values(), *_PLACES.values())
    return citation.kind == _URL or all(getattr(citation, name) is None for name in others)


def encode_annotation(citation: Citation, *, is_own: bool) -> dict[str, Any] | None:
    """An annotation; None for a citation that is neither ours nor of an address."""
    if is_own and citation.kind != _URL:
        return laid({"type": citation.kind} if citation.kind else {}, citation.extras)
    if citation.url is None and not is_own:
        return None
    names = {**_TEXTS, **_PLACES}
    found = {key: getattr(citation, name) for key, name in names.items()}
    source = {key: value for key, value in found.items() if value is not None}
    if not is_own:  # the SDKs' type demands the places
        source = {"start_index": 0, "end_index": 0, "title": "", **source}
    return laid({"type": _URL, _URL: source}, citation.extras)
