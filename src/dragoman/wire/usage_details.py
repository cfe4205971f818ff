"""Detailed token counts, such as audio, images, or cache writes by retention.

A dialect lists where its usage has them (`DETAILS` in its `response.py`). Its decoder leaves them
in the extras, from where they are moved into `Usage.details`, and back before encoding. A count is
moved only if it is where the table says, so that it is written as it came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.model.frozen import EMPTY, freeze_mapping, thaw
from dragoman.model.usage import Usage

_MAX_COUNT = 2**63


class UsageDetails:
    """Where a dialect's usage has detailed counts: wire paths by their names in the model.

    `lists` has fields whose items name a modality and count its tokens, with the prefix of their
    names in the model (`input` for `input_audio`).
    """

    __slots__ = ("_dialect", "_kinds", "_lists", "_paths", "derived", "keeps_mark")

    def __init__(self, dialect: str, lists: Mapping[str, str] = EMPTY, **paths: str) -> None:
        self._dialect = dialect
        self._lists = lists
        self._paths = {name: tuple(path.split(".")) for name, path in paths.items()}
        self._kinds = tuple(f"{kind}_" for kind in lists.values())
        self.derived: frozenset[str] = frozenset()
        """Names of counts that the decoder adds up from others, which stay where they are."""
        self.keeps_mark = False
        """Whether an empty object of the dialect in the extras is significant."""

    def has(self, name: str) -> bool:
        """Whether the dialect has a count of that name."""
        return name in self._paths or name in self.derived or name.startswith(self._kinds)

    def taken(self, usage: Usage) -> Usage:
        """Move the counts in a usage's extras into its details."""
        fields = usage.extras.get(self._dialect)
        if not fields or not isinstance(fields, Mapping):
            return usage
        left: dict[str, Any] = dict(fields)
        found = dict(self._found(fields, left))
        if not found:
            return usage
        others = {key: value for key, value in usage.extras.items() if key != self._dialect}
        if left or self.keeps_mark:
            others = {self._dialect: left, **others}
        extras = freeze_mapping(others, "extras") if others else EMPTY
        return usage.replace(details=found, extras=extras)

    def _found(self, fields: Mapping[str, Any], left: dict[str, Any]) -> Iterator[tuple[str, int]]:
        for name, steps in self._paths.items():
            value: Any = fields.get(steps[0])  # absent in most objects
            for step in steps[1:] if value is not None else ():
                value = value.get(step) if isinstance(value, (dict, Mapping)) else None
            if type(value) is int and 0 <= value < _MAX_COUNT:
                _take(left, steps)
                yield name, value
        for field, kind in self._lists.items():
            counts = _listed(fields.get(field))
            if counts:
                del left[field]
                yield from ((f"{kind}_{word.lower()}", count) for word, count in counts.items())

    def put(self, usage: Usage) -> Usage:
        """Move the details into the extras, where the encoder expects them."""
        if not usage.details:
            return usage
        kept = usage.extras.get(self._dialect)
        fields: dict[str, Any] = thaw(kept) if isinstance(kept, Mapping) else {}
        for name, count in usage.details.items():
            if name in self._paths:
                _put(fields, self._paths[name], count)
        for field, kind in self._lists.items():
            listed = [
                {"modality": name.removeprefix(f"{kind}_").upper(), "tokenCount": count}
                for name, count in usage.details.items()
                if name.startswith(f"{kind}_") and name not in self._paths
            ]
            if listed:
                fields.setdefault(field, listed)
        if not fields:
            return usage.replace(details=EMPTY)
        return usage.replace(details=EMPTY, extras={**usage.extras, self._dialect: fields})


def _listed(wire: Any) -> dict[str, int] | None:
    """The counts by modality; None if the list holds anything else."""
    found: dict[str, int] = {}
    for item in wire if isinstance(wire, (list, tuple)) else ():
        if not isinstance(item, Mapping) or list(item) not in _PAIRS:
            return None
        word, count = item["modality"], item["tokenCount"]
        is_fine = type(word) is str and type(count) is int and 0 <= count < _MAX_COUNT
        if not is_fine or word in found or word != word.upper() or not word:
            return None
        found[word] = count
    return found


_PAIRS = (["modality", "tokenCount"], ["tokenCount", "modality"])


def _take(fields: dict[str, Any], steps: tuple[str, ...]) -> None:
    first, *rest = steps
    if rest:
        inner = dict(fields[first])
        _take(inner, tuple(rest))
        fields[first] = inner
        if inner:
            return
    del fields[first]


def _put(fields: dict[str, Any], steps: tuple[str, ...], count: int) -> None:
    for step in steps[:-1]:
        inner = fields.setdefault(step, {})
        if not isinstance(inner, dict):
            return
        fields = inner
    fields.setdefault(steps[-1], count)
