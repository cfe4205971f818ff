"""Whether time grows with the size of the input and no faster: the time for one item, by size."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from benchmarks import conversations, recordings, streams, translation
from benchmarks.clock import seconds
from benchmarks.report import Ratio, duration

MESSAGES = (250, 1_000, 4_000, 16_000)
PARTS = (1, 10, 100, 1_000, 10_000)
DELTAS = (100, 10_000)  # of ten bytes
_LINEAR = 2.0  # caches and the garbage collector have their share


def of_messages(counts: Sequence[int] = MESSAGES) -> list[Ratio]:
    """Conversations of so many messages."""
    print("\nTime for one message, by the number of messages: OpenAI Chat to")
    sizes = {count: conversations.body(count // 4) for count in counts}
    return list(_translations(sizes, smallest=counts[0]))


def of_parts(counts: Sequence[int] = PARTS) -> list[Ratio]:
    """One message of so many parts."""
    print("\nTime for one part, by the number of parts in one message: OpenAI Chat to")
    sizes = {count: _in_parts(count) for count in counts}
    middle = counts[len(counts) // 2]  # below, the request itself is most of it
    return list(_translations(sizes, smallest=middle))


def _translations(sizes: Mapping[int, bytes], smallest: int) -> Iterator[Ratio]:
    for target in recordings.DIALECTS:
        way = translation.ours(target)
        times = _for_one({size: partial(way, body) for size, body in sizes.items()})
        print(f"  {target:17} {_line(times)}")
        largest = max(times)
        what = f"{target}: one of {largest:,} against one of {smallest:,}"
        ratio = Ratio(what, times[largest] / times[smallest], at_most=_LINEAR)
        print(ratio)
        yield ratio


def of_deltas(counts: tuple[int, int] = DELTAS) -> list[Ratio]:
    """One call's arguments in so many pieces, as they come and all at once."""
    few, many = counts
    print(f"\nArguments in {many:,} pieces of 10 bytes")
    ratios: list[Ratio] = []
    for dialect in recordings.DIALECTS:
        stream = _asked(dialect, recordings.arguments(many))
        if len(recordings.documents(dialect, stream)) < many:
            print(f"  {dialect}: has no arguments in pieces")
            continue
        read = streams.read(dialect)
        pieces = recordings.pieces(dialect, stream)
        times = seconds(
            {
                "one piece": partial(read, stream),
                "event by event": partial(streams.read_pieces(dialect), pieces),
                "few": partial(read, _asked(dialect, recordings.arguments(few))),
                "one delta": partial(read, _asked(dialect, ["".join(recordings.arguments(many))])),
            },
            rounds=7,
            per_round=0.002,
        )
        ratios += _shown(dialect, times, few, many)
    return ratios


def _shown(dialect: str, times: Mapping[str, float], few: int, many: int) -> list[Ratio]:
    whole, pieces = times["one piece"], times["event by event"]
    print(
        f"  {dialect:17} fed in one piece {duration(whole)}, event by event {duration(pieces)};"
        f" as one delta {duration(times['one delta'])}"
    )
    growing = (whole / many) / (times["few"] / few)
    ratios = [
        Ratio(f"{dialect}: event by event against one piece", pieces / whole, at_most=2),
        Ratio(f"{dialect}: one of {many:,} against one of {few:,}", growing, at_most=_LINEAR),
    ]
    print(*ratios, sep="\n")
    return ratios


def _asked(dialect: str, words: Sequence[str]) -> bytes:
    return recordings.encoded(dialect, recordings.answer(0, words))


def _for_one(jobs: Mapping[int, Callable[[], Any]]) -> dict[int, float]:
    """Seconds for one item, by the number of items."""
    times = seconds({str(size): job for size, job in jobs.items()}, rounds=7, per_round=0.002)
    return {size: times[str(size)] / size for size in jobs}


def _line(times: Mapping[int, float]) -> str:
    return ", ".join(f"{size:,}: {duration(value)}" for size, value in times.items())


def _in_parts(count: int) -> bytes:
    parts = [{"type": "text", "text": f"This is part number {n} of them."} for n in range(count)]
    wire = {"model": "gpt-5.1", "messages": [{"role": "user", "content": parts}]}
    return json.dumps(wire).encode()
