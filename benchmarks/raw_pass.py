"""JSON lines read and written by orjson, in one process or several: the least a conversion costs.

As `dragoman convert` does, it reads in batches, keeps the order and writes one file.

`python -m benchmarks.raw_pass IN OUT PROCESSES`
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import BinaryIO

import orjson

_BATCH = 1024 * 1024


def main(source: str, target: str, processes: int) -> None:
    """Copy the one file to the other, through objects."""
    with Path(source).open("rb") as lines, Path(target).open("wb") as out:
        if processes == 1:
            out.writelines(map(_passed, _batches(lines)))
            return
        with get_context("spawn").Pool(processes) as pool:
            out.writelines(pool.imap(_passed, _batches(lines)))


def _batches(lines: BinaryIO) -> Iterator[list[bytes]]:
    while batch := lines.readlines(_BATCH):
        yield batch


def _passed(lines: list[bytes]) -> bytes:
    return b"\n".join([orjson.dumps(orjson.loads(line)) for line in lines]) + b"\n"


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
