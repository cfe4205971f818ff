"""Which cases of a large table `make test` runs: the others are `thorough`.

A parametrised test runs on the first, the middle and the last value of each of its parameters, and
on every dialect and every backend that its values name, in as few cases as cover all these. Tables
of hostile input are not sampled: each of their cases is an attack or a mistake of its own. A test's
name tells that it is one. Where such a table runs on backends, each of its cases runs on one of
them, besides the sample. What else must not be sampled is marked: `pytest.mark.whole` (rules).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import pytest

_HOSTILE = re.compile(
    r"attack|forged|garbage|hostile|invalid|junk|malformed|nonsense|refused|rejected|stranger|tricks"
)
_BACKENDS = Path(__file__).resolve().parent / "history" / "storage"

BACKENDS = sorted(path.stem.removeprefix("backend_") for path in _BACKENDS.glob("backend_*.py"))
"""The backends that histories are tested on: a file for each."""

LARGE = 3
"""Cases of one function that are run without being sampled."""

# What is about the backends themselves runs on all of them, other tests on a third of them each.
_ABOUT_BACKENDS = "history/storage/"
_SHARE = 3


@dataclass(frozen=True)
class Case:
    """A case of a function: the place of its value in each parameter, and the names in it."""

    places: dict[str, int]
    names: frozenset[str]


def sample(cases: Sequence[Case]) -> set[int]:
    """The numbers of the cases to run: they cover what `_wanted` lists, greedily.

    >>> table = [Case({"row": row}, frozenset()) for row in range(9)]
    >>> sorted(sample(table))
    [0, 4, 8]
    """
    if len(cases) <= LARGE:
        return set(range(len(cases)))
    wanted = _wanted(cases)
    offered = [wanted.intersection(_covered(case)) for case in cases]
    chosen: set[int] = set()
    while wanted:
        # The first of those that cover most, so that the same table has the same sample anywhere.
        best = max(range(len(cases)), key=lambda number: len(offered[number] & wanted))
        chosen.add(best)
        wanted -= offered[best]
    return chosen


def _wanted(cases: Sequence[Case]) -> set[Hashable]:
    """What a sample has to contain: places in parameters, and names."""
    wanted: set[Hashable] = {name for case in cases for name in case.names}
    for parameter in cases[0].places:
        places = sorted({case.places[parameter] for case in cases})
        wanted |= {(parameter, places[at]) for at in (0, len(places) // 2, -1)}
    return wanted


def _covered(case: Case) -> Iterable[Hashable]:
    return (*case.names, *case.places.items())


def leave_out(items: Iterable[pytest.Item]) -> None:
    """Mark as `thorough` what a sample of each function's cases leaves out."""
    from dragoman import dialects  # not before the environment is that of the tests

    named = frozenset((*dialects(), *BACKENDS))
    functions: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and not _is_elsewhere(item):
            functions[item.nodeid.partition("[")[0]].append(item)
    for found in functions.values():
        places = _places(found)
        share = [each for each in found if not _is_other_backend(each, places[each], _share(each))]
        cases = [_case(item, places[item], named) for item in share]
        chosen = {share[number] for number in sample(cases)}
        if found[0].get_closest_marker("whole") is not None:
            chosen.update(share)
        elif _is_hostile(found[0]):
            all_of_them = 1 + max(each.get("backend", 0) for each in places.values())
            chosen.update(
                each for each in found if not _is_other_backend(each, places[each], all_of_them)
            )
        for item in found:
            if item not in chosen:
                item.add_marker(pytest.mark.thorough)


def _is_hostile(item: pytest.Item) -> bool:
    """Whether a test's name says that it is about hostile input, or about mistakes."""
    return _HOSTILE.search(item.nodeid.partition("[")[0].rpartition("::")[2]) is not None


def _is_elsewhere(item: pytest.Item) -> bool:
    return any(map(item.get_closest_marker, ("slow", "extended", "thorough")))


def _share(item: pytest.Item) -> int:
    """Of how many backends one has to run a case."""
    return 1 if _ABOUT_BACKENDS in item.nodeid else _SHARE


def _places(items: Sequence[pytest.Item]) -> dict[pytest.Item, dict[str, int]]:
    """Which of its values each parameter has in each case.

    pytest's own `indices` number the cases, not the values, where tables are multiplied.
    """
    known: defaultdict[str, dict[int, int]] = defaultdict(dict)
    found: dict[pytest.Item, dict[str, int]] = {}
    for item in items:
        places = found[item] = {}
        for parameter, value in item.callspec.params.items():  # type: ignore[attr-defined]
            values = known[parameter]
            places[parameter] = values.setdefault(id(value), len(values))
    return found


def _is_other_backend(item: pytest.Item, places: Mapping[str, int], share: int) -> bool:
    """Whether a case is left to other backends than its own."""
    if "backend" not in places:
        return False
    backend = item.callspec.params["backend"]  # type: ignore[attr-defined]
    case = item.name.replace(backend, "").encode()
    return bool((places["backend"] + crc32(case)) % share)


def _case(item: pytest.Item, places: dict[str, int], named: frozenset[str]) -> Case:
    """A case by its values; a parameter whose values are dialects or backends needs all of them."""
    spec = item.callspec  # type: ignore[attr-defined]
    names = {name for name in named if name in spec.id}
    for parameter, value in spec.params.items():
        if isinstance(value, str) and value in named:
            names.add(f"{parameter}={value}")
    return Case(places, frozenset(names))
