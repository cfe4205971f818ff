"""Maps the items of an encoded body to messages, so that the lens can show them side by side.

Encoders put the same string objects into the body that the request holds. If every text of the
request is a distinct object, object identity tells which message a text came from. Units without
such a text (a blank text, a call without arguments) are matched by value, by ids and names, and by
the order of the messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dragoman.gateway.page.evidence import Evidence, Owner
from dragoman.gateway.page.wire_units import Unit, units_of
from dragoman.model.requests import Request

REQUEST = -1
"""The owner of units that belong to no message but to the request's system prompt."""
_MAX_COMPARED = 200_000


class Aligned(NamedTuple):
    """The paths of a request's messages in a body."""

    rows: list[list[str]]
    """By message: the paths of its items in the body."""
    parts: Mapping[Owner, str]
    """By message and part: the closest known path."""

    def wire_path(self, path: str) -> str | None:
        """Returns the path in the body for a canonical path; None if unknown."""
        number, rest = _index(path, "messages")
        if number is None or number >= len(self.rows):
            return None
        part, _ = _index(rest.removeprefix("."), "parts")
        found = None if part is None else self.parts.get((number, part))
        return found or next(iter(self.rows[number]), None)


def fresh(request: Request) -> Request:
    """Returns a copy of the request in which no two texts are the same object."""
    return Request.from_json(request.to_json())


def aligned(
    request: Request, body: Mapping[str, Any], messages_field: str, system_field: str | None
) -> Aligned:
    """Finds the messages of a `fresh` request in the body that it was encoded to."""
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
    """Finds owners by value, ids and order, for units without an identifying text."""
    used = Counter(owner for owner in owners if owner is not None and owner != REQUEST)
    for guess in (evidence.guess, evidence.next_left):
        settled = {unit.item for unit, owner in zip(units, owners, strict=True)
                   if owner is not None}  # fmt: skip
        ahead = _ahead(owners, len(evidence.messages) - 1)
        low, budget = 0, _MAX_COMPARED
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
    """Returns, for each unit, the owner of the next unit whose owner is known."""
    found: list[int] = []
    for owner in reversed(owners):
        found.append(last)
        if owner is not None and owner != REQUEST:
            last = owner
    return found[::-1]


def _collapsed(
    units: Sequence[Unit], owners: Sequence[int | None], evidence: Evidence
) -> Iterator[tuple[str, int | None]]:
    """Yields paths and owners: one per item if it has a single owner, else one per unit."""
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
    """Returns the index after a name at the start of a path, and the rest of the path."""
    if not path.startswith(f"{name}["):
        return None, path
    number, _, rest = path[len(name) + 1 :].partition("]")
    return (int(number) if number.isascii() and number.isdigit() else None), rest
