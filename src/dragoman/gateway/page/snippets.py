"""A few words around what a search found."""

from __future__ import annotations

import re
from typing import NamedTuple

_AROUND = 80
_MOST_MARKS = 20
_LONGEST = 200_000  # characters of a message that are looked at
_WORD = re.compile(r"\w+")


class Snippet(NamedTuple):
    """Some text, and where in it the words are, as `[start, end]`."""

    text: str
    marks: list[list[int]]


def snippet_of(text: str, query: str) -> Snippet:
    """The text around the first of the words that a search asked for.

    >>> snippet_of("Where is the Old Bridge?", "bridge")
    Snippet(text='Where is the Old Bridge?', marks=[[17, 23]])
    """
    wanted = set(_WORD.findall(query.casefold()))
    head = text[:_LONGEST]
    found = [each for each in _WORD.finditer(head) if each[0].casefold() in wanted]
    start = max(found[0].start() - _AROUND, 0) if found else 0
    end = min(start + 2 * _AROUND + 40, len(text))
    before, after = "…" * (start > 0), "…" * (end < len(text))
    marks = [
        [
            len(before) + _units(text[start : each.start()]),
            len(before) + _units(text[start : each.end()]),
        ]
        for each in found[:_MOST_MARKS]
        if each.end() <= end
    ]
    return Snippet(f"{before}{text[start:end]}{after}", marks)


def _units(text: str) -> int:
    """The length of a text as scripts count it: in units of UTF-16."""
    return len(text) + sum(character > "\uffff" for character in text)
