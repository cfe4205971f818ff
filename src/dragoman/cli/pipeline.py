"""The pipeline of `dragoman convert`: from files, through the workers, into the output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import chain

from dragoman.cli.atomic_files import Output
from dragoman.cli.conversion import Job, Outcome
from dragoman.cli.conversion_report import Tally
from dragoman.cli.documents import documents, size_of_files
from dragoman.cli.exit_codes import BROKEN, FOUND, OK
from dragoman.cli.screen import progress
from dragoman.cli.workers import outcomes
from dragoman.providers.documents.batches import Batch


class Pipeline:
    """Converts files into one output of pure JSON.

    A single array gives an array; everything else gives JSONL.
    """

    def __init__(self, job: Job, jobs: int, output: Output, tally: Tally) -> None:
        self._job = job
        self._jobs = jobs
        self._output = output
        self._tally = tally
        self._is_array = False
        self._is_begun = False

    def run(self, files: Sequence[str]) -> int:
        """Convert all files, or up to the first failure; returns the exit code."""
        with progress(size_of_files(files), seen=self._output.is_seen) as advance:
            batches = documents(files, advance)
            first = next(batches, None)
            if first is not None:
                self._is_array = len(files) == 1 and first.of_array
                done = self._convert(chain([first], batches))
            else:
                done = True
        if done:
            self._end()
        self._tally.report(is_complete=done)
        if self._tally.broken:
            return BROKEN
        return FOUND if self._tally.lossy else OK

    def _convert(self, batches: Iterator[Batch]) -> bool:
        """Convert the batches; returns whether it reached the end."""
        job = self._job._replace(separator=b",\n" if self._is_array else b"\n")
        with closing(outcomes(job, batches, self._jobs)) as results:
            for outcome in results:
                self._write(outcome)
                self._tally.add(outcome)
                if outcome.rejects and not job.keep_going:
                    return False
        return True

    def _write(self, outcome: Outcome) -> None:
        if not outcome.converted:
            return
        write = self._output.write
        if self._is_array:
            write(b",\n" if self._is_begun else b"[\n")
        self._is_begun = True
        write(outcome.output)
        if not self._is_array:
            write(b"\n")
        self._output.flush()

    def _end(self) -> None:
        if self._is_array:
            self._output.write(b"\n]\n" if self._is_begun else b"[]\n")
        self._output.keep()
