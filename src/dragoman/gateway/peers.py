"""Adds up metrics over all workers, which exchange them over Unix sockets in a private folder.

Each worker also saves its counts in a file. A worker that replaces another continues from them, so
that counters never decrease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from dragoman.gateway.metrics import Counts, Metrics, added
from dragoman.transport.atomic_files import write_atomically

_TIMEOUT = 2.0
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Counts).decode


class Peers:
    """One worker's connection to the other workers of the gateway."""

    def __init__(self, folder: Path, number: int, count: int) -> None:
        """`number` is this worker's, from 1; only the user may read the folder."""
        self._folder = folder
        self._number = number
        self._count = count
        self._counts: Callable[[], Counts] = Counts
        self._server: asyncio.Server | None = None
        self._saved = b""

    async def start(self, metrics: Metrics, counts: Callable[[], Counts]) -> None:
        """Restore the counts of the worker that this one replaces, and serve the others."""
        before = self._load(self._number)
        if before is not None:
            metrics.restore(before)
        self._counts = counts
        path = self._socket(self._number)
        path.unlink(missing_ok=True)  # left by a killed worker
        self._server = await asyncio.start_unix_server(self._serve_counts, path)

    async def close(self) -> None:
        """Save the counts and stop serving."""
        self.save()
        if self._server is not None:
            self._server.close()

    def _socket(self, number: int) -> Path:
        return self._folder / f"{number}.sock"

    def _file(self, number: int) -> Path:
        return self._folder / f"{number}.json"

    # --- this worker's counts

    async def _serve_counts(
        self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(OSError):
            writer.write(_encode(self._snapshot()))
            await writer.drain()
        writer.close()

    def _snapshot(self) -> Counts:
        """The current counts, saved before they are shown to anyone."""
        counts = self._counts()
        self._save(counts)
        return counts

    def save(self) -> None:
        """Save the current counts."""
        self._save(self._counts())

    def _save(self, counts: Counts) -> None:
        # Gauges end with the worker.
        data = _encode(msgspec.structs.replace(counts, active=0, connections=0))
        if data == self._saved:
            return
        self._saved = data
        with suppress(OSError):  # such as a full disk: counting continues
            write_atomically(self._file(self._number), data, is_private=True)

    def _load(self, number: int) -> Counts | None:
        try:
            return _decode(self._file(number).read_bytes())
        except (OSError, msgspec.MsgspecError):
            return None

    # --- all workers

    async def total(self) -> tuple[Counts, int]:
        """The counts of all workers, and the number of workers that responded."""
        others = [each for each in range(1, self._count + 1) if each != self._number]
        replies = await asyncio.gather(*map(self._fetch, others))
        answers = [each for each in replies if each is not None]
        silent = [number for number, each in zip(others, replies, strict=True) if each is None]
        kept = [each for each in map(self._load, silent) if each is not None]
        return added([self._snapshot(), *answers, *kept]), 1 + len(answers)

    async def _fetch(self, number: int) -> Counts | None:
        try:
            async with asyncio.timeout(_TIMEOUT):
                reader, writer = await asyncio.open_unix_connection(self._socket(number))
                try:
                    return _decode(await reader.read())
                finally:
                    writer.close()
        except (OSError, TimeoutError, msgspec.MsgspecError):
            return None
