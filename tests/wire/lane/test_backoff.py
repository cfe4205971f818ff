"""Clients whose conversations always leave the lane have almost no overhead."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman.wire.lane import requests as lane
from dragoman.wire.lane.backoff import Backoff
from tests.wire.lane import requests as lanes

_HI = {"role": "user", "content": "Hi"}
_ODD = {**_HI, "odd": 1}


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(lane, "BACKOFF", Backoff())
    lane.HEADS.clear()
    yield
    lane.HEADS.clear()


def _raw(*messages: Any, **fields: Any) -> bytes:
    return json.dumps({"model": "m", "max_tokens": 9, "messages": messages, **fields}).encode()


def _took_lane(raw: bytes) -> bool:
    found = lanes.difference(raw, "openai-chat", "anthropic")
    assert not isinstance(found, str), found
    return found.took_lane


def _looks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The requests that the lane tries from now on."""
    looked: list[Any] = []
    translated = lane._translated

    def looking(given: Any, raw: Any, asked: Any) -> Any:
        looked.append(raw)
        return translated(given, raw, asked)

    monkeypatch.setattr(lane, "_translated", looking)
    return looked


def test_the_lane_backs_off_after_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lane tries only one in sixteen odd requests; another client is not affected."""
    looked = _looks(monkeypatch)
    for _ in range(200):
        assert not _took_lane(_raw(_ODD))
    assert 12 < len(looked) < 30
    took = [_took_lane(_raw(_HI, user="another")) for _ in range(10)]
    assert took == [False] + [True] * 9


def test_the_lane_is_used_again_for_plain_requests() -> None:
    """After a few requests it is tried again, and single odd ones cause no backoff."""
    for _ in range(50):
        assert not _took_lane(_raw(_ODD))
    took = [_took_lane(_raw(_HI)) for _ in range(20)]
    assert took.index(True) <= 9
    assert all(took[took.index(True) :])
    assert not _took_lane(_raw(_ODD))
    assert _took_lane(_raw(_HI))


def _tools(count: int, text: str) -> list[Any]:
    function = {"description": text, "parameters": {"type": "object"}}
    return [{"type": "function", "function": {"name": f"f{n}", **function}} for n in range(count)]


@pytest.mark.parametrize("fields", [{}, {"user": "u1"}])
def test_a_large_head_that_comes_once_is_not_made(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]
) -> None:
    """For a long conversation, a small head is made at once, a large one if it comes again."""
    looked = _looks(monkeypatch)
    long = {"role": "user", "content": "word " * 2_000}
    assert _took_lane(_raw(long, **fields))
    for number in range(5):
        assert not _took_lane(_raw(long, tools=_tools(100, f"At {number}. " * 9), **fields))
    assert len(looked) == 1
    assert _took_lane(_raw(long, tools=_tools(100, "At 0. " * 9), **fields))
    assert _took_lane(_raw(*[long] * 9, tools=_tools(100, "Another. " * 9), **fields))


def test_the_backoff_table_is_bounded() -> None:
    """The table is limited, however many clients there are."""
    backoff = Backoff()
    for number in range(5_000):
        backoff.record_failure(number)
        assert len(backoff) <= 1024
    backoff.record_success(4_999)
    assert not backoff.should_skip(4_999)
