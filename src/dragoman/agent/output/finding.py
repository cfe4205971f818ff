"""Finds JSON in a model's text: all of it, in a code fence, or among words."""

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
"""Maximum values among words that are tried."""
_MAX_TRIED = 1_000
"""Maximum brackets tried as the start of a value: each failure costs time proportional to the text
before it, because Python counts its lines."""
_decode = json.JSONDecoder().raw_decode


class Found(NamedTuple):
    """A JSON value in a text."""

    value: Any
    size: int
    """Its length in characters."""


class Findings:
    """The JSON values in a text, likeliest first; and why the text as a whole is not JSON."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.problem = ""
        """The JSON error of the whole text, if it is not JSON."""

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
    """The text as a JSON value, or the error."""
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
    """The objects and arrays among words, in order.

    The search continues where the last attempt ended, so that no part is parsed twice.
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
    """Whether a complete value begins at `start`, and where it or the failed attempt ends."""
    try:
        return True, _decode(text, start)[1]
    except json.JSONDecodeError as error:
        return False, error.pos
    except (RecursionError, ValueError):  # unreadable, like everything around it
        return False, len(text)
