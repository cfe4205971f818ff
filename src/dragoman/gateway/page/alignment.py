"""Which items of a body are which message: the lens shows them side by side.

Encoders write the texts that they are given, the very objects: a request whose texts are all
objects of their own leaves them in the body as marks. What holds none (a blank text, a call without
arguments) is found by its value, by ids and names, and by the order of the messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dragoman.gateway.page.evidence import Evidence, Owner
from dragoman.gateway.page.wire_units import Unit, units_of
from dragoman.model.requests import Request

REQUEST = -1
"""The owner of what is no message: the system prompt of a request."""
_MOST_COMPARED = 200_000


class Aligned(NamedTuple):
    """The places of a request's messages in a body."""

    rows: list[list[str]]
    """By message: the paths of what it became."""
    parts: Mapping[Owner, str]
    """By message and part: the closest path that is known."""

    def wire_path(self, path: str) -> str | None:
        """Where in the body the thing at a canonical path is; None where that is not known."""
        number, rest = _index(path, "messages")
        if number is None or number >= len(self.rows):
            return None
        part, _ = _index(rest.removeprefix("."), "parts")
        found = None if part is None else self.parts.get((number, part))
        return found or next(iter(self.rows[number]), None)


def fresh(request: Request) -> Request:
    """The same request, with no text shared between two places."""
    return Request.from_json(request.to_json())


def aligned(
    request: Request, body: Mapping[str, Any], messages_field: str, system_field: str | None
) -> Aligned:
    """Where the messages of a `fresh` request are in the body that it was encoded to."""
    units = units_of(body, messages_field, system_field)
    evidence = Evidence(request)
    owners: list[int | None] = []
    parts: dict[Owner, str] = {}
    for unit in units:
        found = evidence.owner(unit)
        owners.append(None if found is None else found[0])
        if found is not None and found[0] != REQUEST:
            parts.setdefault(found, unit.path)
    _fill(units, owners, evidence)
    rows: list[list[str]] = [[] for _ in request.messages]
    for path, owner in _collapsed(units, owners, evidence):
        if owner is not None and owner != REQUEST:
            rows[owner].append(path)
    return Aligned(rows, parts)


def _fill(units: Sequence[Unit], owners: list[int | None], evidence: Evidence) -> None:
    """Find owners by value, ids and order, for units that hold no mark."""
    used = Counter(owner for owner in owners if owner is not None and owner != REQUEST)
    for guess in (evidence.guess, evidence.next_left):
        settled = {unit.item for unit, owner in zip(units, owners, strict=True)
                   if owner is not None}  # fmt: skip
        ahead = _ahead(owners, len(evidence.messages) - 1)
        low, budget = 0, _MOST_COMPARED
        for place, unit in enumerate(units):
            owner = owners[place]
            is_open = guess == evidence.guess or unit.item not in settled
            if owner is None and is_open and budget > 0:
                high = max(low, ahead[place])
                budget -= high - low + 1
                owner = owners[place] = guess(unit, low, high, used)
                if owner is not None:
                    used[owner] += 1
                    settled.add(unit.item)
            if owner is not None and owner != REQUEST:
                low = max(low, owner)


def _ahead(owners: Sequence[int | None], last: int) -> list[int]:
    """For each unit: the message that the next one with a known owner belongs to."""
    found: list[int] = []
    for owner in reversed(owners):
        found.append(last)
        if owner is not None and owner != REQUEST:
            last = owner
    return found[::-1]


def _collapsed(
    units: Sequence[Unit], owners: Sequence[int | None], evidence: Evidence
) -> Iterator[tuple[str, int | None]]:
    """Paths and owners: an item as a whole where all of it has one owner, else its pieces."""
    start = 0
    while start < len(units):
        end = start
        while end < len(units) and units[end].item == units[start].item:
            end += 1
        yield from _of_item(units[start:end], owners[start:end], evidence)
        start = end


def _of_item(
    units: Sequence[Unit], owners: Sequence[int | None], evidence: Evidence
) -> Iterator[tuple[str, int | None]]:
    known = [owner for owner in owners if owner is not None]
    if not known:
        yield units[0].item, None
        return
    last, settled = known[0], list[int | None]()
    for unit, owner in zip(units, owners, strict=True):
        last = last if owner is None else owner
        fits = owner is not None or evidence.may_hold(last, unit.kind)
        settled.append(last if fits else None)
    if len(set(settled)) == 1:
        yield units[0].item, settled[0]
        return
    yield from ((unit.path, owner) for unit, owner in zip(units, settled, strict=True))


def _index(path: str, name: str) -> tuple[int | None, str]:
    """The number behind a name at the start of a path, and the rest of the path."""
    if not path.startswith(f"{name}["):
        return None, path
    number, _, rest = path[len(name) + 1 :].partition("]")
    return (int(number) if number.isascii() and number.isdigit() else None), rest
