"""Bodies with known surroundings give the same result as on the general path."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

import dragoman
from dragoman.providers.translation import _asked
from dragoman.wire.lane import requests as lane
from dragoman.wire.lane.surroundings import Surroundings
from tests.wire.lane import requests as lanes

_HI = '[{"role":"user","content":"Hi"}]'
_HO = '[{"role":"user","content":"Ho"},{"role":"assistant","content":"Hi"},' + _HI[1:]


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(lane, "LONG", 0)
    monkeypatch.setattr(lane, "SURROUNDINGS", Surroundings())
    lane.HEADS.clear()
    yield
    lane.HEADS.clear()


def _took_lane(body: str, source: str = "openai-chat", target: str = "anthropic") -> bool:
    found = lanes.difference(body.encode(), source, target)
    assert not isinstance(found, str), found
    return found.took_lane


@pytest.mark.parametrize("source", lanes.DIALECTS)
def test_a_known_body_is_not_split(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another conversation between known bytes is found without parsing these."""
    body = lanes.in_dialect({"model": "m", "messages": json.loads(_HI), "max_tokens": 9}, source)
    other = lanes.in_dialect({"model": "m", "messages": json.loads(_HO), "max_tokens": 9}, source)
    assert _took_lane(json.dumps(body), source, "openai-chat")
    assert len(lane.SURROUNDINGS) == 1
    monkeypatch.delattr(lane, "_split")
    assert _took_lane(json.dumps(other), source, "openai-chat")


@pytest.mark.parametrize(
    ("known", "other"),
    [
        ('{"model":"m","messages":X}', '{"model":"m","messages":Y,"tools":[]}'),
        ('{"model":"m","messages":X}', '{"model":"m","messages":Y,"stop":["a"]}'),
        ('{"messages":X,"n":1}', '{"messages":Y,"stop":["a"],"n":1}'),
        ('{"messages":X,"n":1}', '{"messages":Y,"messages":X,"n":1}'),
        ('{"messages":X,"n":1}', '{"messages":Y X,"n":1}'),
        ('{"messages":X,"n":1}', '{"messages":Y],"n":1}'),
        ('{"messages":X,"n":1}', '{"messages": Y ,"n":1}'),
        ('{"messages":X,"n":1}', '{"messages":,"n":1}'),
        ('{"messages":X,"n":1}', '{"messages":"n":1}'),
        ('{"messages":X,"messages":X}', '{"messages":Y,"messages":X}'),
        ('{"messages":X,"messages":X}', '{"messages":X,"messages":Y}'),
        ('{"metadata":{"messages":X},"messages":X}', '{"metadata":{"messages":Y},"messages":X}'),
        ('{"metadata":{"messages":X},"messages":X}', '{"metadata":{"messages":X},"messages":Y}'),
        (r'{"a\"messages":X,"messages":X}', r'{"a\"messages":Y,"messages":X}'),
        (r'{"mess\u0061ges":X,"n":1}', r'{"mess\u0061ges":Y,"n":1}'),
        ('{"messages": X, "n": 1}', '{"messages": Y, "n": 1}'),
        ('{"messages" : X}', '{"messages" : Y}'),
        ('{"messages":X,"metadata":{"messages":0}}', '{"messages":Y,"metadata":{"messages":0}}'),
    ],
)
@pytest.mark.parametrize("target", ["anthropic", "openai-chat", "openai:gpt-5.1"])
def test_similar_bodies_are_translated_alike(known: str, other: str, target: str) -> None:
    """More fields, duplicate or nested names, whitespace, and invalid JSON."""
    for _ in range(2):
        _took_lane(known.replace("X", _HI), target=target)
        for conversation in (_HO, _HI, '[{"role":"user","content":"Ho","odd":1}]'):
            body = other.replace("Y", conversation).replace("X", _HI)
            _took_lane(body, target=target)


def test_any_bytes_between_known_ones_are_translated_alike() -> None:
    """Conversations of other bodies, complete, truncated, doubled or with extra bytes."""
    rng = random.Random(7)
    for _ in range(150):
        source, target = rng.choice(lanes.DIALECTS), rng.choice(lanes.TARGETS)
        bodies = [lanes.in_dialect(lanes.made_body(rng), source) for _ in range(2)]
        for raw in lanes.spliced([json.dumps(each).encode() for each in bodies], source, rng):
            found = lanes.difference(raw, source, target)
            assert not isinstance(found, str), (raw, source, target, found)


def test_a_short_end_is_found_beside_a_longer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the conversation ends in the bytes of the other's fields."""
    short = '{"model":"m","messages":X,"max_completion_tokens":1000}'
    long = '{"model":"m","messages":X,"stop":[{}],"max_completion_tokens":1000}'
    for body in (short, long, short, long):
        _took_lane(body.replace("X", _HI))
    assert len(lane.SURROUNDINGS) == 2
    monkeypatch.delattr(lane, "_split")
    assert _took_lane(short.replace("X", _HO))


@pytest.mark.parametrize("target", ["anthropic", "openai-chat"])
def test_fields_after_a_conversation_do_not_count_as_its_end(target: str) -> None:
    """A list of tools at the end of a body is not an odd message of a known, shorter body."""
    tools = [{"type": "function", "function": {"name": name}} for name in ("f", "g")]
    known = '{"model":"m","messages":X}'
    other = '{"model":"m","messages":X,"tools":' + json.dumps(tools) + "}"
    assert _took_lane(known.replace("X", _HI), target=target)
    for conversation in (_HI, _HO):
        assert _took_lane(other.replace("X", conversation), target=target)


def test_a_first_request_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A head that comes once costs only a lookup; the second time it is cached."""
    monkeypatch.setattr(lane, "LONG", 8192)
    asked = _asked("openai-chat", "anthropic", None, repair=True)
    assert asked is not None
    body = json.dumps({"model": "m", "messages": json.loads(_HI), "max_tokens": 9}).encode()
    with monkeypatch.context() as patched:
        patched.delattr(lane, "_tried")
        assert lane.translated(body, asked) is None
    made = lane.translated(body, asked)
    assert made is not None
    assert made.to_bytes() == dragoman.translate(
        body.decode(), source="openai-chat", target="anthropic"
    ).to_bytes()  # fmt: skip


def test_the_cache_is_bounded() -> None:
    """In number and in bytes; evicted entries are split again."""
    asked = _asked("openai-chat", "anthropic", None, repair=True)
    assert asked is not None
    kept = Surroundings(max_kept=20, max_bytes=20_000)

    def keep(fields: dict[str, Any]) -> bytes:
        body = json.dumps({"messages": [], **fields}).encode()
        kept.keep(body, lane._split(body)["messages"], asked)
        return body

    for number in range(100):
        body = keep({"n": number, "padding": "x" * (number % 50)})
        found = kept.find(body, asked.source)
        assert found is not None
        assert found[0].known == json.dumps(
            {"n": number, "padding": "x" * (number % 50)}, separators=(",", ":")
        ).encode()  # fmt: skip
        assert len(kept) <= 20
        assert kept.size <= 20_000
    for number in range(100):
        keep({"n": 1, "a": number, "padding": "the same end of more bytes than are looked at"})
    assert 0 < len(kept) <= 16
    size = kept.size
    body = keep({"large": "x" * 3_000})
    assert kept.find(body, asked.source) is None
    assert kept.size == size
    kept.clear()
    assert len(kept) == kept.size == 0
