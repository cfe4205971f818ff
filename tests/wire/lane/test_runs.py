"""Runs of deltas are written from their texts, with the same result as one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import Front, Request
from dragoman.model.events import Event, PartDelta
from dragoman.wire.lane.flows import Flow
from dragoman.wire.lane.runs import EventList, Run
from tests.wire.lane.frames import BEGINNINGS, ENDINGS, FORMS, PLAIN, Style
from tests.wire.lane.test_templates import same_ids

_LONG = 450


def _stream(dialect: str, name: str, texts: list[str]) -> bytes:
    style = Style(dialect)
    bodies = [*BEGINNINGS[dialect], *map(FORMS[dialect][name], texts), *ENDINGS[dialect]]
    return b"".join(map(style.frame, bodies))


def _events(dialect: str, name: str, texts: list[str]) -> list[Event]:
    decoder = dragoman.dialect(dialect).stream_decoder()
    return decoder.feed(_stream(dialect, name, texts))


def _written(target: str, write: Callable[[Any], bytes]) -> tuple[bytes, Any, Any]:
    with same_ids():
        encoder = Front(target, Request(model="asked"), clock=lambda: 1.0).stream()
        data = write(encoder) + encoder.close()
        return data, list(encoder.losses), list(encoder.repairs)


def _check(target: str, events: list[Event]) -> None:
    """Events encoded at once give the same result as one by one."""
    singly = _written(target, lambda encoder: b"".join(map(encoder.feed, list(events))))
    assert _written(target, lambda encoder: encoder.feed_all(events)) == singly


TARGETS = ("openai-chat", "anthropic", "openai-responses", "gemini", "ollama")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("source", "name"), [(source, name) for source in FORMS for name in PLAIN[source]]
)
def test_runs_are_encoded_like_their_events(source: str, name: str, target: str) -> None:
    """For every source, form of deltas and target."""
    _check(target, _events(source, name, [f"wörd {n} " for n in range(_LONG)]))


def test_the_texts_of_a_run_are_not_collected_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The encoder takes them from the list that the decoder returned."""
    events = _events("openai-chat", "text", [f"word {n} " for n in range(_LONG)])
    assert type(events) is EventList
    taken: list[int] = []
    found = Flow.texts_at

    def counted(self: Flow, events: Any, place: int) -> list[str]:
        texts = found(self, events, place)
        taken.append(len(texts))
        return texts

    monkeypatch.setattr(Flow, "texts_at", counted)
    Front("gemini", Request(model="m")).stream().feed_all(events)
    assert max(taken, default=0) > _LONG // 2


def _change(events: list[Event], kind: str, place: int) -> None:
    place %= len(events)
    if kind == "delete":
        del events[place]
    elif kind == "swap":
        events[place], events[place - 1] = events[place - 1], events[place]
    elif kind == "insert":
        events.insert(place, PartDelta(0, "more"))
    elif kind == "replace":
        events[place] = PartDelta(0, "other")
    elif kind == "reverse":
        events.reverse()
    else:
        events.extend(events[place:])


@given(
    texts=st.lists(st.sampled_from(["a", "ü", '"', "\\", "\n", "\ud800"]), min_size=1),
    changes=st.lists(
        st.tuples(
            st.sampled_from(["delete", "swap", "insert", "replace", "reverse", "extend"]),
            st.integers(0, 10_000),
        ),
        max_size=3,
    ),
    target=st.sampled_from(TARGETS),
)
def test_a_changed_list_is_encoded_as_it_is(
    texts: list[str], changes: list[tuple[str, int]], target: str
) -> None:
    """A caller may change the list between decoding and encoding."""
    events = _events("openai-chat", "text", texts * (_LONG // len(texts)))
    for kind, place in changes:
        if events:
            _change(events, kind, place)
    _check(target, events)


def test_texts_from_any_position() -> None:
    """Texts of an unchanged run are returned; none before it, after it or if it changed."""
    run: list[Event] = [PartDelta(0, text) for text in "abcd"]
    others: list[Event] = [PartDelta(1, "x")]
    events = EventList([*others, *run, *others], [Run(1, run, list("abcd"))])
    assert [events.texts_at(n) for n in range(6)] == [
        [], list("abcd"), list("bcd"), ["c", "d"], ["d"], [],
    ]  # fmt: skip
    events[3] = PartDelta(2, "c")
    assert events.texts_at(1) == events.texts_at(3) == []
    assert events.texts_at(4) == ["d"]
