"""The JSON in what a model says: all of it, in a fence, or among words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import freeze
from dragoman.model.jsontext import loads

_FENCE = "```"
_LANGUAGE = re.compile(r"[ \t]*(?:[\w.+-]*[ \t]*\r?\n|json\b)", re.ASCII | re.IGNORECASE)
_OPENING = re.compile(r"[{\[]")
_MAX_FENCES = 32
_MAX_FOUND = 32
"""Values among words that are looked at."""
_MAX_TRIED = 1_000
"""Brackets among words that may begin one: a failure costs as much as the text before it is long,
as Python counts its lines."""
_decode = json.JSONDecoder().raw_decode


class Found(NamedTuple):
    """A JSON value in a text."""

    value: Any
    size: int
    """How many characters it takes."""


class Findings:
    """The values in a text, from the likeliest to the least; and why the text itself is none."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.problem = ""
        """What is wrong with the text as JSON, if it is none."""

    def __iter__(self) -> Iterator[Found]:
        text = self._text.strip().removeprefix("\ufeff")
        whole, self.problem = _read(text)
        if whole is not None:
            yield whole
            return
        for inner in text.split(_FENCE, _MAX_FENCES)[1::2]:
            yield from _readable(_without_language(inner))
        yield from _among_words(text)


def _read(text: str) -> tuple[Found | None, str]:
    """The value that a text is, or what is wrong with it."""
    try:
        return Found(freeze(loads(text), "the JSON"), len(text)), ""
    except InvalidInputError as error:
        return None, str(error)


def _readable(text: str) -> Iterator[Found]:
    found, _ = _read(text)
    if found is not None:
        yield found


def _without_language(inner: str) -> str:
    language = _LANGUAGE.match(inner)
    return inner[language.end() if language else 0 :].strip()


def _among_words(text: str) -> Iterator[Found]:
    """The objects and arrays that stand in a text, one after the other.

    The search goes on where the last attempt ended, so that no part of the text is read twice.
    """
    found, end = 0, 0
    for _ in range(_MAX_TRIED):
        opening = _OPENING.search(text, end)
        if opening is None or found == _MAX_FOUND:
            return
        start = opening.start()
        is_whole, end = _span(text, start)
        if is_whole:
            found += 1
            yield from _readable(text[start:end])
        end = max(end, start + 1)


def _span(text: str, start: int) -> tuple[bool, int]:
    """Whether a whole value begins there, and where it ends, or where the reader got stuck."""
    try:
        return True, _decode(text, start)[1]
    except json.JSONDecodeError as error:
        return False, error.pos
    except (RecursionError, ValueError):  # nothing that could be read, nor what is around it
        return False, len(text)
