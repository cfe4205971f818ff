"""Citations: locations in documents or web pages that a text refers to."""

from __future__ import annotations

from typing import Any, NamedTuple

from dragoman.model.parts import Citation
from dragoman.wire.anthropic.dialect import NAME, Block
from dragoman.wire.overlay import fields_of, overlay_of, with_overlay
from dragoman.wire.settings_table import (
    Setting,
    decode_settings,
    encode_settings,
    setting,
    text,
    whole,
)
from dragoman.wire.writing import Writing


class _Location(NamedTuple):
    """One type of citation: the fields we understand, and the anchor that makes it valid.

    The anchor (an index into this very request, or an encrypted reference) means nothing in other
    dialects and can't be made up (W71). It stays in the extras; a citation without it is left out.
    """

    fields: tuple[Setting, ...] = ()
    anchor: str | None = None


_TITLE, _QUOTE = setting("title", "title", text), setting("cited_text", "quote", text)


def _span(unit: str) -> tuple[Setting, Setting]:
    return setting(f"start_{unit}", "start", whole), setting(f"end_{unit}", "end", whole)


def _in_document(unit: str) -> _Location:
    title = setting("document_title", "title", text)
    return _Location((title, _QUOTE, *_span(unit)), "document_index")


_FOUND, _SEAL = "web_search_result_location", "encrypted_index"
SHOWN = "dragoman"
"""Replaces the encrypted reference in another provider's citation shown to a client."""
_LOCATIONS: dict[str, _Location] = {
    "char_location": _in_document("char_index"),
    "page_location": _in_document("page_number"),
    "content_block_location": _in_document("block_index"),
    "search_result_location": _Location(
        (setting("source", "url", text), _TITLE, _QUOTE, *_span("block_index")),
        "search_result_index",
    ),
    _FOUND: _Location((setting("url", "url", text), _TITLE, _QUOTE), _SEAL),
}
_UNKNOWN = _Location()
_FIELDS = ("url", "title", "quote", "start", "end")


def decode_citations(wire: Any) -> tuple[Citation, ...]:
    """Decode the citations of a text; empty unless all of them are well-formed."""
    if not isinstance(wire, list) or not all(_is_well_formed(item) for item in wire):
        return ()
    return tuple([_decode_citation(item) for item in wire])


def encode_citations(
    citations: tuple[Citation, ...], writing: Writing, first: int = 0
) -> list[Block]:
    """Encode citations; those that the provider would refuse are left out.

    `first` is the index of the first one in its text.
    """
    encoded: list[Block] = []
    for index, citation in enumerate(citations, first):
        place = f".citations[{index}]"
        if not _is_anchored(citation) and writing.is_response and citation.url is not None:
            encoded.append(_shown(citation))
            continue
        if not _is_anchored(citation):
            writing.lose_here("a citation whose source is not in this request is left out", place)
            continue
        encoded.append(with_overlay(_citation(citation), citation.extras, NAME))
        for name in _unsupported_fields(citation):
            writing.lose_here("this citation type does not have this field", f"{place}.{name}")
    return encoded


def _is_well_formed(wire: Any) -> bool:
    kind = wire.get("type") if isinstance(wire, dict) else None
    if type(kind) is not str:
        return False
    anchor = _LOCATIONS.get(kind, _UNKNOWN).anchor
    return len(wire) > 1 if anchor is None else anchor in wire


def _is_anchored(citation: Citation) -> bool:
    ours = fields_of(citation.extras, NAME)
    anchor = _LOCATIONS.get(citation.kind, _UNKNOWN).anchor
    return bool(ours) if anchor is None else anchor in ours


def _shown(citation: Citation) -> Block:
    """Another dialect's URL citation in a form that clients can read, with a fake anchor."""
    return {
        "type": _FOUND,
        "url": citation.url,
        "title": citation.title,
        "cited_text": citation.quote or "",
        _SEAL: SHOWN,
    }


def _decode_citation(wire: Block) -> Citation:
    kind: str = wire["type"]
    if kind == _FOUND and wire[_SEAL] == SHOWN:  # made by a front
        found = decode_settings(wire, _LOCATIONS[_FOUND].fields)
        return Citation(kind="url", **{key: value for key, value in found.items() if value})
    fields = _LOCATIONS.get(kind, _UNKNOWN).fields
    found = decode_settings(wire, fields)
    read = {"type", *(key for key, name, _ in fields if name in found)}
    return Citation(kind=kind, **found, extras=overlay_of(wire, read, NAME))


def _citation(citation: Citation) -> Block:
    fields = _LOCATIONS.get(citation.kind, _UNKNOWN).fields
    return {"type": citation.kind, **encode_settings(citation, fields)}


def _unsupported_fields(citation: Citation) -> list[str]:
    """The fields of a citation that its type does not have."""
    known = {name for _, name, _ in _LOCATIONS.get(citation.kind, _UNKNOWN).fields}
    return [n for n in _FIELDS if n not in known and getattr(citation, n) is not None]
