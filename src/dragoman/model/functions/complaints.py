"""Reports errors raised by users' classes, without quoting the value.

A model needs the text of a validator's error to correct itself. But the text may quote the value,
so every part of the value that occurs in it is masked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

_MASK = "…"
_MAX_LEAVES = 10_000
_MAX_LENGTH = 500
_MAX_QUOTING = 20_000
_SHOWN = 5
_SHORT = 4
"""Characters: shorter strings are masked only where they are whole words."""


def complaint(error: Exception, given: Any, names: Collection[str] = ()) -> str:
    """Why a class rejected the value; only the exception's class name if there is no message.

    >>> complaint(ValueError("Atlantis is no city"), {"city": "Atlantis"}, ["city"])
    '… is no city'

    `names` are keys declared by the developer, which may be shown; all others are masked.
    """
    details = _details(error, names)
    if not details and type(error) in {ValueError, AssertionError} and str(error):
        details = [str(error)]
    if not details:
        return type(error).__name__
    texts = [_masked(text, given, names) for text in details[:_SHOWN]]
    rest = [f"and {len(details) - _SHOWN} more"] if len(details) > _SHOWN else []
    return "; ".join([*dict.fromkeys(texts), *rest])


def _details(error: Any, names: Collection[str]) -> list[str]:
    """The path and message of each error in a pydantic ValidationError (known by its method)."""
    listing = getattr(error, "errors", None)
    if not callable(listing):
        return []
    try:
        found: Any = listing(include_url=False, include_context=False, include_input=False)
        return [_detail(each, names) for each in found]
    except Exception:  # noqa: BLE001 - an unrelated method of the same name
        return []


def _detail(found: Mapping[str, Any], names: Collection[str]) -> str:
    place: Sequence[Any] = found["loc"]
    path = "".join(_step(step, names) for step in place).removeprefix(".")
    text = str(found["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return f"{path}: {text}" if path else text


def _step(step: Any, names: Collection[str]) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if step in names else ".*"


def _masked(text: str, given: Any, names: Collection[str]) -> str:
    """The text with every string, number and undeclared key of the value masked."""
    leaves: set[str] = set()
    for seen, leaf in enumerate(_leaves(given, names)):
        if len(leaf) <= len(text):
            leaves.add(leaf)
        if seen > _MAX_LEAVES:
            return "not accepted"
    if len(text) > _MAX_QUOTING or sum(map(len, leaves)) > _MAX_QUOTING:
        return "not accepted"
    if leaves:
        longest_first = sorted(leaves, key=lambda leaf: (-len(leaf), leaf))
        text = re.sub("|".join(map(_pattern, longest_first)), _MASK, text, flags=re.IGNORECASE)
    return text[:_MAX_LENGTH]


def _pattern(leaf: str) -> str:
    plain = re.escape(leaf)
    return plain if len(leaf) >= _SHORT else rf"(?<!\w){plain}(?!\w)"


def _leaves(value: Any, names: Collection[str]) -> Iterator[str]:
    """The strings and numbers in a value, as `str` and `repr` would write them."""
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key not in names:
                yield from _leaves(key, names)
            yield from _leaves(item, names)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _leaves(item, names)
    else:
        yield from _spellings(value)


def _spellings(value: Any) -> Iterator[str]:
    try:
        texts = {str(value), str(value).strip(), repr(value), repr(value)[1:-1]}
    except Exception:  # noqa: BLE001 - a user's class may raise anything
        return
    if not isinstance(value, str):
        texts.discard(repr(value)[1:-1])  # stripping quotes makes sense for strings only
    yield from (text for text in texts if text.strip())
