"""Converts batches in this process or in several, keeping their order."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dragoman.cli.conversion import Converter, Job, Outcome
from dragoman.cli.exit_codes import FILES, Ending
from dragoman.providers.documents.batches import Batch

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor
    from multiprocessing.process import BaseProcess

_BATCHES_PER_WORKER = 2
"""Batches in flight per worker: one in work, one waiting."""

_POLL_SECONDS = 1.0
"""Seconds between two checks of the workers while waiting for a result."""

_converter: Converter | None = None


def outcomes(job: Job, batches: Iterator[Batch], jobs: int = 1) -> Generator[Outcome, None, None]:
    """The results of the batches, in order; memory use doesn't depend on their number."""
    if jobs == 1:
        yield from map(Converter(job), batches)
    else:
        yield from _pooled(job, batches, jobs)


def _pooled(job: Job, batches: Iterator[Batch], jobs: int) -> Generator[Outcome, None, None]:
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    # spawn works on every platform, and workers inherit no open files.
    pool = ProcessPoolExecutor(jobs, get_context("spawn"), initializer=_begin, initargs=(job,))
    under_way: deque[Future[Outcome]] = deque()
    watch = _Watch(pool)
    _start_tracker()
    try:
        for batch in batches:
            with _uninterrupted():  # it may start a worker
                under_way.append(pool.submit(_work, batch))
            if len(under_way) >= jobs * _BATCHES_PER_WORKER:
                yield watch.result(under_way.popleft())
        while under_way:
            yield watch.result(under_way.popleft())
    except BrokenProcessPool:
        raise Ending(FILES, "a worker process died, perhaps out of memory; lower --jobs") from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _start_tracker() -> None:
    """Start multiprocessing's resource tracker first: starting it unblocks interrupts."""
    if sys.platform != "win32":
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()


@contextmanager
def _uninterrupted() -> Generator[None]:
    """Block interrupts here and in processes started here.

    Ctrl-C goes to the whole process group: a worker that is still starting would print a traceback.
    """
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Watch:
    """Waits for results, and notices dead workers.

    The pool notices them too, unless the worker died while writing a result: then the pool waits
    forever for the rest, because this process holds the other end of the pipe open.
    """

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def result(self, future: Future[Outcome]) -> Outcome:
        """The result of a batch; raises if the pool is broken."""
        from concurrent.futures import wait

        while not wait((future,), timeout=_POLL_SECONDS).done:
            workers = list((getattr(self._pool, "_processes", None) or {}).values())
            if not all(worker.is_alive() for worker in workers):
                self._give_up(workers)
        return future.result()

    def _give_up(self, workers: list[BaseProcess]) -> None:
        """Kill the workers and close the pipe, so that the pool notices."""
        for worker in workers:
            worker.kill()
        writer = getattr(getattr(self._pool, "_result_queue", None), "_writer", None)
        if writer is not None and not writer.closed:
            writer.close()


def _begin(job: Job) -> None:
    """Initialise a worker."""
    global _converter  # noqa: PLW0603 - one for the life of the process
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles interrupts
    threading.Thread(target=_follow, daemon=True).start()
    _converter = Converter(job)


def _follow() -> None:
    """Exit when the parent process ends, for whatever reason."""
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(batch: Batch) -> Outcome:
    if _converter is None:
        raise RuntimeError  # the pool runs `_begin` first
    return _converter(batch)
