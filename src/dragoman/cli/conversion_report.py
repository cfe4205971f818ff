"""Reports losses and skipped documents: counted for people, itemised for programs."""

from __future__ import annotations

import sys

from dragoman.cli.atomic_files import Output
from dragoman.cli.conversion import Counts, Outcome, Reject
from dragoman.cli.exit_codes import complain
from dragoman.cli.screen import print_table
from dragoman.model.jsontext import dumps

_MAX_KINDS = 1000
_MAX_ROWS = 40
_MAX_COMPLAINTS = 20


class Tally:
    """Totals over all batches."""

    def __init__(self, losses: Output | None, rejects: Output | None) -> None:
        self._losses = losses
        self._rejects = rejects
        self._counts: Counts = {}
        self.documents = 0
        self.converted = 0
        self.broken = 0
        self.lossy = 0

    @property
    def rejected(self) -> int:
        """How many documents were skipped."""
        return self.broken + self.lossy

    def add(self, outcome: Outcome) -> None:
        """Add the result of a batch."""
        for key, count in outcome.counts.items():
            known = key in self._counts or len(self._counts) < _MAX_KINDS
            counted = key if known else (key[0], "…", "other kinds")
            self._counts[counted] = self._counts.get(counted, 0) + count
        if self._losses is not None:
            for lost in outcome.lost:
                number = self.documents + lost.place + 1
                row = {"file": outcome.name, "line": lost.line, "document": number,
                       "kind": lost.weight, "rule": lost.rule, "path": lost.path,
                       "reason": lost.reason}  # fmt: skip
                self._losses.write(dumps(row) + b"\n")
        for reject in outcome.rejects:
            which = self.documents + reject.place + 1 if outcome.numbered else None
            self._reject(outcome.name, reject, which)
        self.documents += outcome.documents
        self.converted += outcome.converted

    def _reject(self, name: str, reject: Reject, number: int | None) -> None:
        self.lossy += reject.is_loss
        self.broken += not reject.is_loss
        if self._rejects is not None:
            self._rejects.write(reject.raw + b"\n")
        if self.rejected <= _MAX_COMPLAINTS:
            document = "" if number is None else f" document {number}:"
            complain(f"{name}:{reject.line}:{document} {reject.problem}")

    def report(self, *, is_complete: bool) -> None:
        """Print the losses and, after a complete run, the skipped documents to standard error."""
        rows = sorted(self._counts.items(), key=lambda row: (-row[1], row[0]))
        shown = [[f"{count}", *key] for key, count in rows[:_MAX_ROWS]]
        if shown:
            print_table(("count", "kind", "where", "what happened"), shown, sys.stderr)
        if len(rows) > _MAX_ROWS:
            complain(f"and {len(rows) - _MAX_ROWS} more kinds of losses; --losses FILE lists all")
        if self.rejected and is_complete:
            complain(f"{self.converted} of {self.documents} documents converted")
