"""Search result excerpts."""

from __future__ import annotations

import re
from typing import NamedTuple

_BEFORE = 24  # characters before the word: few, so that a phone shows it on its one line
_LENGTH = 200
_MAX_MARKS = 20
_MAX_SEARCHED = 200_000  # characters of a message
_WORD = re.compile(r"\w+")


class Snippet(NamedTuple):
    """An excerpt, and the `[start, end]` of each matching word in it."""

    text: str
    marks: list[list[int]]


def snippet_of(text: str, query: str) -> Snippet:
    """Returns an excerpt around the first word that matches the query.

    >>> snippet_of("Where is the Old Bridge?", "bridge")
    Snippet(text='Where is the Old Bridge?', marks=[[17, 23]])
    """
    wanted = set(_WORD.findall(query.casefold()))
    head = text[:_MAX_SEARCHED]
    found = [each for each in _WORD.finditer(head) if each[0].casefold() in wanted]
    start = max(found[0].start() - _BEFORE, 0) if found else 0
    end = min(start + _LENGTH, len(text))
    before, after = "…" * (start > 0), "…" * (end < len(text))
    marks = [
        [
            len(before) + _units(text[start : each.start()]),
            len(before) + _units(text[start : each.end()]),
        ]
        for each in found[:_MAX_MARKS]
        if each.end() <= end
    ]
    return Snippet(f"{before}{text[start:end]}{after}", marks)


def _units(text: str) -> int:
    """Returns the length in UTF-16 code units, as JavaScript counts."""
    return len(text) + sum(character > "\uffff" for character in text)
