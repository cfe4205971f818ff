"""Converts documents in batches; this is what a worker process runs."""

from __future__ import annotations

import gc
import re
from functools import lru_cache
from typing import Literal, NamedTuple

from dragoman.cli.documents import read_session
from dragoman.cli.exit_codes import fault
from dragoman.errors import DragomanError
from dragoman.providers.documents.batches import Batch
from dragoman.providers.documents.reading import Reader
from dragoman.providers.documents.splitting import Piece
from dragoman.providers.documents.writing import Destination
from dragoman.wire.losses import Note, Repair

Weight = Literal["loss", "repair", "note"]

_INDEX = re.compile(r"\[\d+\]")


class Job(NamedTuple):
    """What to do with each document."""

    source: str
    target: str
    strict: bool = False
    keep_going: bool = False
    separator: bytes = b"\n"
    itemised: bool = False
    """Whether to list every loss, not only count them."""

    def begun(self) -> Converter:
        """Prepares the work, once in each process."""
        return Converter(self)


class Lost(NamedTuple):
    """A loss and its document: the line, and the index in the batch."""

    place: int
    line: int
    weight: Weight
    path: str
    reason: str
    rule: str | None
    """The rule that requires a repair."""


class Reject(NamedTuple):
    """A document that could not be converted, the reason, and its original text."""

    place: int
    line: int
    problem: str
    raw: bytes
    is_loss: bool = False
    """It was readable, but losses were forbidden by --strict."""


Counts = dict[tuple[Weight, str, str], int]
"""How often each loss occurred, by kind, path pattern and reason."""


class Outcome(NamedTuple):
    """The result of a batch."""

    name: str
    numbered: bool
    """Whether to name documents by number: an array may have them all on one line."""
    documents: int
    converted: int
    output: bytes
    counts: Counts
    lost: list[Lost]
    rejects: list[Reject]


class Converter:
    """Converts batches one after the other."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._reader = Reader(job.source, read_session)
        self._destination = Destination(job.target)

    def __call__(self, batch: Batch) -> Outcome:
        """Convert a batch; stops at the first reject, unless told to keep going."""
        batch_run = _Run(self._job, self._reader, self._destination)
        collects = gc.isenabled()
        gc.disable()  # a document's objects die with it: nothing to collect
        try:
            return batch_run.outcome(batch)
        finally:
            if collects:
                gc.enable()


class _Run:
    """One batch."""

    def __init__(self, job: Job, reader: Reader, destination: Destination) -> None:
        self._job = job
        self._read = reader.read
        self._text_of = destination.text_of
        self._counts: Counts = {}
        self._lost: list[Lost] = []
        self._rejects: list[Reject] = []

    def outcome(self, batch: Batch) -> Outcome:
        """Convert it."""
        texts: list[bytes] = []
        place = -1
        for place, piece in enumerate(batch.documents()):
            text = self._converted(place, piece)
            if text is not None:
                texts.append(text)
            elif not self._job.keep_going:
                break
        output = self._job.separator.join(texts)
        return Outcome(
            name=batch.name,
            numbered=batch.of_array,
            documents=place + 1,
            converted=len(texts),
            output=output,
            counts=self._counts,
            lost=self._lost,
            rejects=self._rejects,
        )

    def _converted(self, place: int, piece: Piece) -> bytes | None:
        line, raw, problem = piece
        if problem is not None:
            self._rejects.append(Reject(place, line, problem, raw))
            return None
        try:
            document = self._read(raw)
            text, losses, repairs, notes = self._text_of(document.value)
        except DragomanError as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 - one document must not end the run of a million
            problem = fault(error)
        else:
            losses = document.losses + losses
            if not (losses or repairs or notes):
                return text
            self._note(place, line, "loss", losses)
            self._note(place, line, "repair", repairs)
            self._note(place, line, "note", notes)
            if not (losses and self._job.strict):
                return text
            number = "1 loss" if len(losses) == 1 else f"{len(losses)} losses"
            problem = f"{number}, which --strict forbids"
            self._rejects.append(Reject(place, line, problem, raw, is_loss=True))
            return None
        self._rejects.append(Reject(place, line, problem, raw))
        return None

    def _note(self, place: int, line: int, weight: Weight, losses: tuple[Note, ...]) -> None:
        counts = self._counts
        for loss in losses:
            key = (weight, pattern(loss.path), loss.reason)
            counts[key] = counts.get(key, 0) + 1
            if self._job.itemised:
                rule = loss.rule if isinstance(loss, Repair) else None
                self._lost.append(Lost(place, line, weight, loss.path, loss.reason, rule))


@lru_cache(maxsize=4096)
def pattern(path: str) -> str:
    """A path with its indexes replaced by `*`.

    >>> pattern("messages[3].parts[0]")
    'messages[*].parts[*]'
    """
    return _INDEX.sub("[*]", path)
