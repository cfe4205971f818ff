"""Recognises the lines of `dragoman history export`, of which several make one document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dragoman.providers.documents.splitting import Piece

_LINE = re.compile(rb'\s*\{\s*"dragoman"\s*:\s*\d+\s*,\s*"kind"\s*:\s*"(Session|Record)"')


def is_session(raw: bytes) -> bool:
    """Whether a text starts with a line of an exported session."""
    return _LINE.match(raw) is not None


def sessions_in(lines: Iterable[Piece]) -> Iterator[Piece]:
    """The lines of each session as one piece; other lines as they are."""
    held: list[Piece] = []
    for piece in lines:
        found = _LINE.match(piece.raw)
        if found is not None and found[1] == b"Record":
            held.append(piece)
            continue
        if held:
            yield _joined(held)
            held = []
        if found is None:
            yield piece
        else:
            held.append(piece)
    if held:
        yield _joined(held)


def _joined(pieces: list[Piece]) -> Piece:
    return Piece(pieces[0].line, b"\n".join(piece.raw for piece in pieces))
