"""Works on batches in this process or in several, keeping their order."""

from __future__ import annotations

import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dragoman.cli.exit_codes import FAULT, FILES, Ending, fault
from dragoman.providers.documents.batches import Batch

if TYPE_CHECKING:
    from concurrent.futures import Future
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnContext
    from queue import SimpleQueue

    Pipe = Connection[Any, Any]

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")

_BATCHES_PER_WORKER = 2
"""Batches in flight per worker: one in work, one waiting."""


class Job(Protocol[T_co]):
    """What to do with each batch; it and its outcomes are sent between processes."""

    def begun(self) -> Callable[[Batch], T_co]:
        """Prepares the work, once in each process."""
        ...


def outcomes(job: Job[T], batches: Iterator[Batch], jobs: int = 1) -> Generator[T, None, None]:
    """The results of the batches, in order; memory use doesn't depend on their number."""
    if jobs == 1:
        yield from map(job.begun(), batches)
    else:
        yield from _pooled(job, batches, jobs)


def _pooled(job: Job[T], batches: Iterator[Batch], jobs: int) -> Generator[T, None, None]:
    from concurrent.futures import ThreadPoolExecutor
    from multiprocessing import get_context
    from queue import SimpleQueue

    # spawn works on every platform, and workers inherit no open files.
    context = get_context("spawn")
    workers: list[_Worker] = []
    idle: SimpleQueue[_Worker] = SimpleQueue()
    under_way: deque[Future[T]] = deque()
    pool = ThreadPoolExecutor(jobs)  # a thread waits for each worker
    _start_tracker()
    try:
        for batch in batches:
            with _uninterrupted():  # it starts threads and processes
                if len(workers) < jobs:
                    workers.append(_Worker(job, context))
                    idle.put(workers[-1])
                under_way.append(pool.submit(_done, idle, batch))
            if len(under_way) >= jobs * _BATCHES_PER_WORKER:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.kill()
        pool.shutdown()


def _start_tracker() -> None:
    """Start multiprocessing's resource tracker first: starting it unblocks interrupts."""
    if sys.platform != "win32":
        from multiprocessing import resource_tracker

        resource_tracker.ensure_running()


@contextmanager
def _uninterrupted() -> Generator[None]:
    """Block interrupts here, and in threads and processes started here.

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


class _Worker:
    """A process that works on one batch at a time.

    Its end of the pipe is open in no other process: if it dies, however it does, reading ends.
    (The workers of a `ProcessPoolExecutor` share one pipe: it waits for ever if one dies while it
    writes, and before Python 3.11.5 also if one dies while batches are written.)
    """

    def __init__(self, job: Job[Any], context: SpawnContext) -> None:
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(job, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def do(self, batch: Batch) -> Any:
        """Have a batch worked on."""
        try:
            _send(self._pipe, batch)
            answer: Any = _receive(self._pipe)
        except (EOFError, OSError):
            message = "a worker process died, perhaps out of memory; lower --jobs"
            raise Ending(FILES, message) from None
        if isinstance(answer, str):
            raise Ending(FAULT, answer)
        return answer

    def kill(self) -> None:
        """End the process, whatever it does; a thread that waits for it gets an error."""
        self._process.kill()
        self._process.join()


def _done(idle: SimpleQueue[_Worker], batch: Batch) -> Any:
    """Have an idle worker do a batch; there are as many as threads that ask for one."""
    worker = idle.get()
    try:
        return worker.do(batch)
    finally:
        idle.put(worker)


# Not the pipe's own `send`: if that fails, Python 3.13 may print a complaint about its buffer.


def _send(pipe: Pipe, value: object) -> None:
    pipe.send_bytes(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))


def _receive(pipe: Pipe) -> Any:
    return pickle.loads(pipe.recv_bytes())  # noqa: S301 - from our own process


def _work(job: Job[Any], pipe: Pipe) -> None:
    """What a worker does, until the parent process closes the pipe or ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles interrupts
    do = job.begun()
    with suppress(EOFError, OSError):
        while True:
            _send(pipe, _answer(do, _receive(pipe)))


def _answer(do: Callable[[Batch], Any], batch: Batch) -> Any:
    """The outcome, or the message for an unexpected error."""
    try:
        return do(batch)
    except Exception as error:  # noqa: BLE001 - foreseen ones are part of the outcome
        return fault(error)
