"""Sums usage by key, day, model and route in memory, until it is written to the store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from dragoman.gateway.keys.amounts import nanos_of
from dragoman.gateway.keys.records import (
    MAX_NAME_LENGTH,
    SUMS,
    BatchSpent,
    Reservation,
    Spent,
    UsageRow,
)
from dragoman.gateway.keys.store import added_up, row_of, values_of
from dragoman.model.name_cache import cached_by_name

By = Literal["key", "day", "model", "route"]
_MAX_LABELS = 10_000
_MAX_FOUND = 1000
_OTHER = "(other)"
_Labels = tuple[str, str, str, str]


@cached_by_name(4096)
def label(text: str) -> str:
    """Make a model's or route's name safe to store: short, printable ASCII."""
    clean = text[:MAX_NAME_LENGTH].encode("ascii", "backslashreplace").decode()
    return clean if clean.isprintable() else "".join(c for c in clean if c.isprintable())


class Pending:
    """Usage that is not in the store yet."""

    def __init__(self) -> None:
        self._sums: dict[_Labels, list[int]] = {}
        self._found: dict[_Labels, list[int]] = {}  # the same, by the names as they came
        self._labels: set[tuple[str, str]] = set()
        self._known: dict[tuple[str, str], tuple[str, str]] = {}  # by the names as they came

    def add(self, reservation: Reservation, spent: Spent) -> None:
        """Count a request."""
        cost = spent.cost
        nanos = 0 if cost is None else nanos_of(cost)
        named = (reservation.key.id, reservation.day, spent.model, spent.route)
        sums = self._found.get(named)
        if sums is None:
            sums = self._find(named, spent)
        sums[0] += 1
        sums[1] += spent.tokens_in
        sums[2] += spent.tokens_out
        sums[3] += spent.tokens_cached
        sums[4] += spent.tokens_reasoning
        sums[5] += nanos
        sums[6] += cost is None

    def _find(self, named: _Labels, spent: Spent) -> list[int]:
        labels = (*named[:2], *self.labels_of(spent))
        sums = self._sums.get(labels)
        if sums is None:
            sums = self._sums[labels] = [0] * len(SUMS)
        if len(spent.model) + len(spent.route) <= MAX_NAME_LENGTH and len(self._found) < _MAX_FOUND:
            self._found[named] = sums
        return sums

    def labels_of(self, spent: Spent) -> tuple[str, str]:
        """The model and route to count a request under.

        Clients may choose arbitrary names if any name is served, so names beyond a limit are
        counted together.
        """
        model, route = spent.model, spent.route
        known = self._known.get((model, route))
        if known is not None:
            return known
        if len(model) + len(route) > MAX_NAME_LENGTH:  # long names are never kept
            model, route = model[:MAX_NAME_LENGTH], route[:MAX_NAME_LENGTH]
        labels = (label(model), label(route))
        if labels not in self._labels:
            if len(self._labels) >= _MAX_LABELS:
                return (_OTHER, labels[1] if len(labels[1]) < MAX_NAME_LENGTH else _OTHER)
            self._labels.add(labels)
        if len(spent.model) + len(spent.route) <= MAX_NAME_LENGTH:
            if len(self._known) >= _MAX_LABELS:
                self._known.clear()
            self._known[model, route] = labels
        return labels

    def take(self) -> list[UsageRow]:
        """Return and clear the pending usage."""
        sums, self._sums = self._sums, {}
        self._found = {}
        return [row_of((*labels, *counts)) for labels, counts in sorted(sums.items())]


def row_for(
    reservation: Reservation, spent: Spent, labels: tuple[str, str], nanos: int
) -> UsageRow:
    """A usage row for one request."""
    return UsageRow(
        key=reservation.key.id, day=reservation.day, model=labels[0], route=labels[1],
        requests=1, tokens_in=spent.tokens_in, tokens_out=spent.tokens_out,
        tokens_cached=spent.tokens_cached, tokens_reasoning=spent.tokens_reasoning,
        nanos=nanos, unknown=int(spent.cost is None),
    )  # fmt: skip


def rows_of(key: str, day: str, batch: Iterable[BatchSpent], pending: Pending) -> list[UsageRow]:
    """The usage rows of a batch."""
    rows: list[UsageRow] = []
    for each in batch:
        labels = pending.labels_of(Spent(model=each.model, route=each.route))
        counts = [getattr(each, name) for name in SUMS]
        rows.append(row_of((key, day, *labels, *counts)))
    return added_up(rows)


def grouped(rows: Iterable[UsageRow], by: Sequence[By]) -> list[UsageRow]:
    """Sum rows, grouped `by` some labels; the other labels are left empty."""
    kept = set(by)
    values = (values_of(row) for row in rows)
    names = ("key", "day", "model", "route")
    return added_up(
        row_of([*(v if n in kept else "" for n, v in zip(names, each, strict=False)), *each[4:]])
        for each in values
    )
