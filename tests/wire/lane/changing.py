"""Streams whose frames change their form within a run, with the lane and without it.

`python -m tests.wire.lane.changing --seconds 600 --seed 1` generates them, decodes them
cut in several ways, encodes the events in every dialect, and prints differences.
"""

from __future__ import annotations

import argparse
import random
import time
import traceback
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import dragoman
from dragoman.model.events import Event
from dragoman.wire.lane import frame_columns, switch, templates
from tests.wire.lane.frames import BEGINNINGS, ENDINGS, FORMS, PLAIN, Frame, Style, cut
from tests.wire.lane.test_flows import check_same as check_written
from tests.wire.lane.test_templates import Told, check_same, same_ids

_TEXTS = ["a", " word", "", '"', "\\", "\n", "é", "\u2028", "\U0001f600", "\x7f", '{"k":', "1}",
          '\\"', "x\\", "\ud83d", "\ude00", "data: ", '","delta":"', "\t", "\x00",
          "ab" * 40]  # fmt: skip
_BETWEEN = [b": ping\n\n", b": ping\n", b":\r\n\r\n", b"retry: 3000\n\n", b"retry: 3000\n",
            b"id: 7\n", b"\n", b"\r\n", b"\n\n\n", b'event: ping\ndata: {"type": "ping"}\n\n',
            b"event: odd\n", b"data:\n\n", b"event: odd\n\n"]  # fmt: skip


def stream(rng: random.Random, dialect: str) -> list[bytes]:
    """Frames of a stream: runs of deltas that change midway, or several interleaved runs."""
    ways = _ways(rng)
    style = Style(dialect, **ways)
    frames = [style.frame(body) for body in BEGINNINGS[dialect]]
    for _ in range(rng.randint(1, 4)):
        names = rng.sample(PLAIN[dialect], rng.choice([1, 1, 1, 2]))
        if rng.random() < 0.3:
            names.append(rng.choice(sorted(FORMS[dialect])))
        is_taking_turns = rng.random() < 0.2
        change = rng.choice([0.0, 0.05, 0.3])
        for n in range(rng.choice([2, 5, 9, 14, 30, 90])):
            name = names[n % len(names)] if is_taking_turns else names[0]
            if not is_taking_turns and rng.random() < 0.05:
                name = rng.choice(names)
            body = FORMS[dialect][name](_text(rng))
            if rng.random() < change:
                frames.append(_changed(rng, style, body))
            else:
                frames.append(style.frame(body))
        if rng.random() < 0.2:
            number, style = style.number, Style(dialect, **_ways(rng))
            style.number = number if rng.random() < 0.7 else rng.randint(0, 10**16)
    if rng.random() < 0.8:
        frames += [style.frame(body) for body in ENDINGS[dialect]]
    return frames


def _ways(rng: random.Random) -> dict[str, Any]:
    names = ("is_ascii", "is_wide", "is_padded", "is_spaced")
    flags = {name: rng.random() < 0.3 for name in names}
    named = {} if rng.random() < 0.7 else {"is_named": rng.random() < 0.5}
    order = rng.choice([0, 0, 0, rng.randint(1, 9)])
    return {**flags, **named, "end": rng.choice(["\n", "\n", "\n", "\r\n"]), "order": order}


def _text(rng: random.Random) -> str:
    draw = rng.random()
    if draw < 0.65:
        return f" word{rng.randint(0, 999)}" if draw > 0.05 else ""
    return "".join(rng.choices(_TEXTS, k=rng.randint(1, 3)))


def _changed(rng: random.Random, style: Style, body: Frame) -> bytes:
    """The frame in another form."""
    return rng.choice(_CHANGES)(rng, style, body)


_AGAIN = [b',"delta":"x"', b',"obfuscation":"y"', b',"obfuscation":"\\u0041"', b',"obfuscation":1',
          b',"sequence_number":007', b',"sequence_number":1.5', b',"sequence_number":null',
          b',"usage":{"prompt_tokens":3,"completion_tokens":4}', b',"usage":null',
          b',"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":6}', b" ", b"\t",
          b',"created_at":"2025-01-01T00:00:01Z"', b',"index":1', b',"type":"ping"']  # fmt: skip


def _styled(rng: random.Random, style: Style, body: Frame) -> bytes:
    """The frame as another server would format it."""
    other = Style(style.dialect, **_ways(rng))
    other.number = style.number
    style.number += 1
    return other.frame(body)


def _after_something(rng: random.Random, style: Style, body: Frame) -> bytes:
    return rng.choice(_BETWEEN) + style.frame(body)


def _in_two_lines(_rng: random.Random, style: Style, body: Frame) -> bytes:
    """Data split over two lines, where JSON allows whitespace."""
    frame = style.frame(body)
    at = frame.find(b",")
    return frame[: at + 1] + b"\ndata: " + frame[at + 1 :] if at > 0 else frame


def _with_a_field_again(rng: random.Random, style: Style, body: Frame) -> bytes:
    frame = style.frame(body)
    at = frame.rfind(b"}")
    return frame[:at] + rng.choice(_AGAIN) + frame[at:]


def _escaped(rng: random.Random, style: Style, body: Frame) -> bytes:
    """The same, with a character of its texts or keys escaped."""
    frame = style.frame(body)
    at = rng.choice([at for at, byte in enumerate(frame) if chr(byte).isalpha()])
    return frame[:at] + b"\\u%04x" % frame[at] + frame[at + 1 :]


def _numbered(rng: random.Random, style: Style, body: Frame) -> bytes:
    """A frame with an unexpected number."""
    style.number = rng.choice([0, 8, 9, 99, 10**15, style.number, -5, 10**20])
    return style.frame(body)


def _reshaped_somewhere(rng: random.Random, style: Style, body: Frame) -> bytes:
    return style.frame(_reshaped(rng, body, rng.choice(_RESHAPES)))


_CHANGES = [_styled, _after_something, _in_two_lines, _with_a_field_again, _escaped, _numbered,
            *[_reshaped_somewhere] * 3]  # fmt: skip


def _extra(_rng: random.Random, body: Frame) -> Frame:
    return {**body, "odd": {"text": "x", "delta": "y"}}


def _null(_rng: random.Random, body: Frame) -> Frame:
    return {**body, "odd": None}


def _other_order(rng: random.Random, body: Frame) -> Frame:
    keys = rng.sample(list(body), len(body))
    return {key: body[key] for key in keys}


def _without_one(rng: random.Random, body: Frame) -> Frame:
    left = rng.choice(list(body))
    return {key: value for key, value in body.items() if key != left}


def _other_value(rng: random.Random, body: Frame) -> Frame:
    key = rng.choice(list(body))
    value: Any = rng.choice([None, 0, 1, 5, "i1", "x", [], {}, True, 1.5, "\ud800"])
    return {**body, key: value}


_RESHAPES: list[Callable[[random.Random, Frame], Frame]] = [
    _extra, _null, _other_order, _other_order, _without_one, _other_value,
]  # fmt: skip


def _reshaped(rng: random.Random, body: Any, reshape: Any) -> Any:
    """The frame with something changed, at the top level or deeper."""
    inner = [key for key, value in body.items() if value and isinstance(value, (dict, list))]
    if not inner or rng.random() < 0.4:
        return reshape(rng, body)
    key = rng.choice(inner)
    value = body[key]
    if isinstance(value, dict):
        return {**body, key: _reshaped(rng, value, reshape)}
    first, *rest = value
    changed = _reshaped(rng, first, reshape) if first and isinstance(first, dict) else first
    return {**body, key: [changed, *rest]}


# --- with the lane and without it


@contextmanager
def columns_at_once() -> Generator[None, None, None]:
    """Within the block, frames are decoded by columns from the first one on."""
    with (
        patch.object(frame_columns, "_MIN_FRAMES", -1),
        patch.object(templates, "_RUN_BEFORE_BATCH", 4),
    ):
        yield


def cuts(rng: random.Random, frames: list[bytes]) -> list[list[bytes]]:
    """The stream in one piece, frame by frame, byte by byte, and cut at random."""
    whole = b"".join(frames)
    places = [rng.randrange(len(whole)) for _ in range(rng.randint(1, 9))]
    some = rng.randint(2, 9)
    grouped = [b"".join(frames[at : at + some]) for at in range(0, len(frames), some)]
    ways = [[whole], frames, grouped, list(cut(whole, places))]
    if len(whole) < 6_000:
        ways.append([whole[at : at + 1] for at in range(len(whole))])
    return ways


def check(rng: random.Random, dialect: str) -> int:
    """Decode and encode one stream with the lane and without it, with all kinds of cuts.

    Returns the number of its events.
    """
    frames = stream(rng, dialect)
    with switch.off():
        told = Told(dialect, [b"".join(frames)])
    events = _all(told)
    for pieces in cuts(rng, frames):
        again = check_same(dialect, pieces)
        if not told.errors:
            assert not again.errors
            assert len(again.events) == len(pieces) + 1
        together = _all(again)
        assert len(together) == len(events)
        assert all(one.identical(other) for one, other in zip(together, events, strict=True))
    for target in rng.sample(dragoman.dialects(), 2):
        check_written(target, events)
        check_translated(dialect, target, frames)
    return len(events)


def _all(told: Told) -> list[Event]:
    return [event for some in told.events for event in some]


def check_translated(source: str, target: str, frames: list[bytes]) -> None:
    """Translate bytes, in one piece or frame by frame, with the lane or without it."""
    whole = b"".join(frames)
    with switch.off():
        long = _translated(source, target, [whole])
    assert _translated(source, target, [whole]) == long
    assert _translated(source, target, frames) == long
    assert _translated(source, target, [whole], at_once=True) == long


def _translated(
    source: str, target: str, pieces: list[bytes], *, at_once: bool = False
) -> tuple[bytes, list[Any]]:
    with same_ids():
        front = dragoman.Front(target, dragoman.Request(model="m"), clock=lambda: 1.0)
        decoder, encoder = dragoman.dialect(source).stream_decoder(), front.stream()
        written: list[bytes] = []
        errors: list[str] = []
        for step in (*(lambda piece=piece: decoder.feed(piece) for piece in pieces), decoder.close):
            try:
                told = step()
                written += [encoder.feed_all(told)] if at_once else map(encoder.feed, told)
            except dragoman.errors.WireError as error:
                errors.append(str(error))
        written.append(encoder.close())
        return b"".join(written), [*encoder.losses, *encoder.repairs, *errors]


def main() -> None:
    """Compare until the time is up."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found, number = Counter[str](), options.seed * 10_000_000
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        number += 1
        rng = random.Random(number)
        dialect = rng.choice(sorted(FORMS))
        try:
            with columns_at_once():
                found["events"] += check(rng, dialect)
        except AssertionError:
            found["different"] += 1
            if found["different"] <= 5:
                print(f"{number}: {dialect}\n{traceback.format_exc(limit=-3)[:3000]}\n")
        found["streams"] += 1
    print(dict(found))


if __name__ == "__main__":
    main()
