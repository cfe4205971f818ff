"""Converting documents, a batch at a time: all that a worker process does."""

from __future__ import annotations

import gc
import re
from functools import lru_cache
from typing import Literal, NamedTuple

from dragoman.cli.exit_codes import fault
from dragoman.errors import DragomanError
from dragoman.providers.documents.batches import Batch
from dragoman.providers.documents.reading import Reader
from dragoman.providers.documents.splitting import Piece
from dragoman.providers.documents.writing import Destination
from dragoman.wire.losses import Note

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
    """Whether every loss is wanted, or their numbers are enough."""


class Lost(NamedTuple):
    """A loss, and the document that it is about: its line, and its place in the batch."""

    place: int
    line: int
    weight: Weight
    path: str
    reason: str


class Reject(NamedTuple):
    """A document that could not be converted, why, and its text as it was."""

    place: int
    line: int
    problem: str
    raw: bytes
    is_loss: bool = False
    """It could be read, but not said without losses, and they were forbidden."""


Counts = dict[tuple[Weight, str, str], int]
"""How often each loss occurred, by weight, kind of place and reason."""


class Outcome(NamedTuple):
    """What became of a batch of a file."""

    name: str
    numbered: bool
    """Whether documents are told by their numbers: an array may have all on one line."""
    documents: int
    converted: int
    output: bytes
    counts: Counts
    lost: list[Lost]
    rejects: list[Reject]


class Converter:
    """Converts batches, one after the other."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._reader = Reader(job.source)
        self._destination = Destination(job.target)

    def __call__(self, batch: Batch) -> Outcome:
        """What becomes of a batch; ends with the first reject, unless told to keep going."""
        batch_run = _Run(self._job, self._reader, self._destination)
        collects = gc.isenabled()
        gc.disable()  # what is made for a document is gone with it: nothing to look for
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
        """What becomes of it."""
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
            text, losses, repairs, notes = self._text_of(self._read(raw).value)
        except DragomanError as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 - one document must not end the run of a million
            problem = fault(error)
        else:
            if not (losses or repairs or notes):
                return text
            self._note(place, line, "loss", losses)
            self._note(place, line, "repair", repairs)
            self._note(place, line, "note", notes)
            if not (losses and self._job.strict):
                return text
            number = f"{len(losses)} things" if len(losses) > 1 else "a thing"
            problem = f"{number} in it can't be said there"
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
                self._lost.append(Lost(place, line, weight, loss.path, loss.reason))


@lru_cache(maxsize=4096)
def pattern(path: str) -> str:
    """A path with its numbers taken out.

    >>> pattern("messages[3].parts[0]")
    'messages[*].parts[*]'
    """
    return _INDEX.sub("[*]", path)
