"""Thinking out of a stream: text in one of two fields, and details that come in pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.parts import Thinking
from dragoman.wire.openai_chat.leftovers import Leftovers
from dragoman.wire.openai_chat.refrain import Refrain
from dragoman.wire.openai_chat.spelling import extras_of, is_integer, is_list, is_object
from dragoman.wire.openai_chat.thinking import (
    DETAIL_TYPES,
    DETAILS,
    TEXT_FIELDS,
    decode_detail,
    mirrored,
    text_words,
)

THINKING = frozenset({*TEXT_FIELDS, DETAILS})


class ThoughtDecoder:
    """Finds the part that a piece of thinking belongs to.

    Each text field is one part. Details of one type and index are one part as well; sealed ones
    come whole, and a signature comes after its text (OpenRouter).
    """

    __slots__ = ("_details", "_grow", "_left", "_start", "_texts")

    def __init__(
        self, start: Callable[[AnyPart], int], grow: Callable[..., None], left: Leftovers
    ) -> None:
        self._start = start
        self._grow = grow
        self._left = left
        self._texts: dict[str, int] = {}
        self._details: dict[tuple[str, int | None], tuple[int, set[str]]] = {}

    def take(self, delta: dict[str, Any]) -> None:
        """Take in the thinking of a delta."""
        texts = {key: delta[key] for key in TEXT_FIELDS if _is_text(delta.get(key))}
        details = delta.get(DETAILS)
        for key in THINKING:
            if key in delta and key not in texts and (key != DETAILS or not details):
                self._left.keep(key, delta[key])
        if details:
            pieces = _checked(details)
            if pieces:
                self._take_details(pieces, texts)
            elif is_list(details):
                self._left.add(DETAILS, details)
            else:
                self._left.keep(DETAILS, details)
        mirror = None
        if len(texts) > 1 and len(set(texts.values())) == 1:  # some servers write both
            mirror, _ = texts.popitem()
            self._left.fill(mirror)
        for field, text in texts.items():
            self._take_text(field, text, mirror)

    def refrain(self, delta: dict[str, Any], fields: list[str]) -> Refrain | None:
        """The refrain that a delta begins whose thinking, in these fields, was one text."""
        texts = [key for key in TEXT_FIELDS if key in fields]
        said = delta[texts[0]] if texts else None
        if type(said) is not str or any(delta[key] != said for key in texts):
            return None
        field, *mirrors = texts
        if DETAILS not in fields:
            places = tuple([(delta, mirror) for mirror in mirrors])
            return Refrain(delta, field, self._texts[field], places)
        return None if mirrors else self._refrain_of_detail(delta, field)

    def _refrain_of_detail(self, delta: dict[str, Any], field: str) -> Refrain | None:
        """That of a detail whose text stands in a field as well."""
        pieces = _checked(delta[DETAILS])
        known = self._details.get(_place(pieces[0])) if len(pieces) == 1 else None
        if known is None or _is_sealed(pieces[0]) or _content(pieces[0]) != delta[field]:
            return None
        if _is_text(pieces[0].get("signature")):
            return None
        place = (pieces[0], DETAIL_TYPES[pieces[0]["type"]][1])
        return Refrain(delta, field, known[0], (place,))

    def _take_text(self, field: str, text: str, mirror: str | None) -> None:
        self._left.fill(field)
        if field in self._texts:
            self._grow(self._texts[field], text=text)
        else:
            part = Thinking(text, extras=extras_of({}, text_words(field)))
            self._texts[field] = self._start(part if mirror is None else mirrored(part, mirror))

    def _take_details(self, pieces: list[dict[str, Any]], texts: dict[str, Any]) -> None:
        """With `reasoning_details`, OpenRouter repeats their text in `reasoning`."""
        self._left.fill(DETAILS)
        said = "".join(_content(piece) for piece in pieces if not _is_sealed(piece))
        mirror = next((key for key, text in texts.items() if text in (said, f"\n{said}")), None)
        if mirror is not None:
            del texts[mirror]
            self._left.fill(mirror)
        for piece in pieces:
            self._take_detail(piece, mirror)

    def _take_detail(self, piece: dict[str, Any], mirror: str | None) -> None:
        kind, place = piece["type"], _place(piece)
        known = None if _is_sealed(piece) else self._details.get(place)
        if known is None:
            part = decode_detail({**piece, DETAIL_TYPES[kind][1]: _content(piece)}, None)
            if part is not None:
                started = self._start(part if mirror is None else mirrored(part, mirror))
                self._details[place] = (started, set(piece))
            return
        at, fields = known
        signature = piece.get("signature")
        late = {
            key: value
            for key, value in piece.items()
            if key not in fields and key not in (DETAIL_TYPES[kind][1], "signature")
        }
        fields.update(late)
        self._grow(
            at,
            text=_content(piece) or None,
            signature=signature if _is_text(signature) else None,
            extras=extras_of(late),
        )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_sealed(piece: dict[str, Any]) -> bool:
    return bool(piece["type"] == "reasoning.encrypted")


def _place(piece: dict[str, Any]) -> tuple[str, int | None]:
    index = piece.get("index")
    return piece["type"], index if is_integer(index) else None


def _content(piece: dict[str, Any]) -> str:
    content = piece.get(DETAIL_TYPES[piece["type"]][1])
    return content if isinstance(content, str) else ""


def _checked(details: Any) -> list[dict[str, Any]]:
    """The details, if each of them is of a known type."""
    pieces: list[dict[str, Any]] = []
    for piece in details if is_list(details) else ():
        kind = piece.get("type") if is_object(piece) else None
        if not is_object(piece) or not isinstance(kind, str) or kind not in DETAIL_TYPES:
            return []
        content = piece.get(DETAIL_TYPES[kind][1], "")
        if not isinstance(content, str) or (kind == "reasoning.encrypted" and not content):
            return []
        pieces.append(piece)
    return pieces
