"""Thinking out of a stream: text in one of two fields, and details that come in pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.parts import Thinking
from dragoman.wire.openai_chat.leftovers import Leftovers
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
        kind, index = piece["type"], piece.get("index")
        place = (kind, index if is_integer(index) else None)
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
