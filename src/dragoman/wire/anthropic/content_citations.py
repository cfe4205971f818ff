"""Citations: where in a document, or on which page of the web, a text found what it says."""

from __future__ import annotations

from typing import Any, NamedTuple

from dragoman.model.parts import Citation
from dragoman.wire.anthropic.dialect import NAME, Block
from dragoman.wire.overlay import fields_of, overlay_of, with_overlay
from dragoman.wire.writing import Writing


class _Field(NamedTuple):
    ours: str
    wire: str
    kind: type


class _Location(NamedTuple):
    """One type of citation: the fields we understand, and the one that makes it valid.

    The latter (an index into this very request, a sealed reference) means nothing elsewhere and
    can't be made up (W71), so it stays in the extras and a citation without it is left out.
    """

    fields: tuple[_Field, ...]
    anchor: str


def _in_document(unit: str) -> _Location:
    return _Location(
        (
            _Field("title", "document_title", str),
            _Field("quote", "cited_text", str),
            _Field("start", f"start_{unit}", int),
            _Field("end", f"end_{unit}", int),
        ),
        "document_index",
    )


_LOCATIONS: dict[str, _Location] = {
    "char_location": _in_document("char_index"),
    "page_location": _in_document("page_number"),
    "content_block_location": _in_document("block_index"),
    "search_result_location": _Location(
        (
            _Field("url", "source", str),
            _Field("title", "title", str),
            _Field("quote", "cited_text", str),
            _Field("start", "start_block_index", int),
            _Field("end", "end_block_index", int),
        ),
        "search_result_index",
    ),
    "web_search_result_location": _Location(
        (
            _Field("url", "url", str),
            _Field("title", "title", str),
            _Field("quote", "cited_text", str),
        ),
        "encrypted_index",
    ),
}


def decode_citations(wire: Any) -> tuple[Citation, ...]:
    """The citations of a text; none where the field is not a list of well-formed ones."""
    if not isinstance(wire, list) or not all(_is_well_formed(item) for item in wire):
        return ()
    return tuple([_decode_citation(item) for item in wire])


def encode_citations(
    citations: tuple[Citation, ...], writing: Writing, first: int = 0
) -> list[Block]:
    """The citations as the wire has them, without those that it would refuse.

    `first` is the number of the first one in its text.
    """
    encoded: list[Block] = []
    for index, citation in enumerate(citations, first):
        if _is_anchored(citation):
            encoded.append(_encode_citation(citation))
            for name in _unsupported_fields(citation):
                writing.lose_here("this type of citation has no such field",
                             f".citations[{index}].{name}")  # fmt: skip
        else:
            writing.lose_here("a citation of something this request does not hold is left out",
                         f".citations[{index}]")  # fmt: skip
    return encoded


def _is_well_formed(wire: Any) -> bool:
    kind = wire.get("type") if isinstance(wire, dict) else None
    if type(kind) is not str:
        return False
    location = _LOCATIONS.get(kind)
    return len(wire) > 1 if location is None else location.anchor in wire


def _is_anchored(citation: Citation) -> bool:
    ours = fields_of(citation.extras, NAME)
    location = _LOCATIONS.get(citation.kind)
    return bool(ours) if location is None else location.anchor in ours


def _decode_citation(wire: Block) -> Citation:
    kind: str = wire["type"]
    location = _LOCATIONS.get(kind)
    taken = {"type"}
    found: dict[str, Any] = {}
    for field in location.fields if location is not None else ():
        value = wire.get(field.wire)
        if type(value) is field.kind:
            found[field.ours] = value
            taken.add(field.wire)
    return Citation(kind=kind, **found, extras=overlay_of(wire, taken, NAME))


def _unsupported_fields(citation: Citation) -> list[str]:
    """The fields of a citation that its type does not have."""
    location = _LOCATIONS.get(citation.kind)
    said = {field.ours for field in location.fields} if location is not None else set()
    names = ("url", "title", "quote", "start", "end")
    return [n for n in names if n not in said and getattr(citation, n) is not None]


def _encode_citation(citation: Citation) -> Block:
    location = _LOCATIONS.get(citation.kind)
    encoded: Block = {"type": citation.kind}
    for field in location.fields if location is not None else ():
        value = getattr(citation, field.ours)
        if value is not None:
            encoded[field.wire] = value
    return with_overlay(encoded, citation.extras, NAME)
