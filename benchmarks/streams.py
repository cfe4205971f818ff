"""Streams read and written, beside raw JSON and the official SDKs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from benchmarks import recordings, sdks
from benchmarks.clock import summed
from benchmarks.report import Ratio, duration, show

_BASE = "msgspec, the JSON of the events"
_OURS = "dragoman, in one piece"
_IN_PIECES = "dragoman, event by event"


def decoding() -> list[Ratio]:
    """All recorded streams of each dialect, in one piece each and event by event."""
    return [ratio for dialect in recordings.DIALECTS for ratio in _decoding(dialect)]


def encoding() -> list[Ratio]:
    """What those streams say, written in every dialect."""
    print("\nStreams written: a dialect's events in each dialect, time for one event")
    for dialect in recordings.DIALECTS:
        streams = recordings.recorded(dialect) or recordings.made(dialect)
        told = [recordings.events_of(dialect, stream) for stream in streams]
        count = sum(map(len, told))
        times = summed(
            {
                name: [partial(recordings.encoded, name, events) for events in told]
                for name in recordings.DIALECTS
            },
            rounds=3,
        )
        figures = (f"{name} {duration(value / count)}" for name, value in times.items())
        print(f"  {dialect:17} {', '.join(figures)}")
    return []


def read(dialect: str) -> Callable[[bytes], object]:
    """Dragoman's reading of a stream: all of its events, and the response they add up to."""
    stream_decoder = recordings.speaker(dialect).stream_decoder

    def reading(stream: bytes) -> object:
        decoder = stream_decoder()
        decoder.feed(stream)
        decoder.close()
        return decoder.response

    return reading


def read_pieces(dialect: str) -> Callable[[list[bytes]], object]:
    """The same, piece by piece."""
    stream_decoder = recordings.speaker(dialect).stream_decoder

    def reading(pieces: list[bytes]) -> object:
        decoder = stream_decoder()
        for piece in pieces:
            decoder.feed(piece)
        decoder.close()
        return decoder.response

    return reading


def _decoding(dialect: str) -> list[Ratio]:
    theirs = sdks.readers(dialect)
    streams, source = _sample(dialect, list(theirs.values()))
    documents = [recordings.documents(dialect, stream) for stream in streams]
    pieces = [recordings.pieces(dialect, stream) for stream in streams]
    ours, ours_in_pieces = read(dialect), read_pieces(dialect)
    times = summed(
        {
            _BASE: [partial(_decode, found) for found in documents],
            _OURS: [partial(ours, stream) for stream in streams],
            _IN_PIECES: [partial(ours_in_pieces, found) for found in pieces],
            **{name: [partial(way, stream) for stream in streams] for name, way in theirs.items()},
        }
    )
    count = sum(map(len, documents))
    times = {name: value / count for name, value in times.items()}
    ratios = _ratios(times, list(theirs))
    show(f"{dialect}: {source}, {count:,} events; time for one event", times, ratios)
    return ratios


def _sample(dialect: str, ways: list[sdks.Read]) -> tuple[list[bytes], str]:
    """The streams to measure with, and what they are: only those that the SDK can read too."""
    streams, source = recordings.recorded(dialect), "recorded"
    if not streams:
        streams, source = recordings.made(dialect), "of our own making (there is no corpus)"
    read_by_all = [stream for stream in streams if _can_read(ways, stream)]
    left = len(streams) - len(read_by_all)
    note = f", {left} that the SDK refuses left out" if left else ""
    return read_by_all, f"{len(read_by_all)} streams {source}{note}"


def _ratios(times: dict[str, float], theirs: list[str]) -> list[Ratio]:
    mine = times[_OURS]
    *plain, fullest = theirs
    return [
        Ratio("against msgspec", mine / times[_BASE], at_most=12),
        Ratio("event by event, against msgspec", times[_IN_PIECES] / times[_BASE]),
        *(Ratio(f"times faster than {name}", times[name] / mine) for name in plain),
        Ratio(f"times faster than {fullest}", times[fullest] / mine, at_least=10),
    ]


def _decode(documents: list[bytes]) -> None:
    for document in documents:
        msgspec.json.decode(document)


def _can_read(ways: list[sdks.Read], stream: bytes) -> bool:
    try:
        return all(way(stream) for way in ways)
    except Exception:  # noqa: BLE001 - whatever an SDK raises, the stream is not for it
        return False
