"""Requests that differ only in a label share a head."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import dragoman
from dragoman.wire.envelope import PREFIX
from dragoman.wire.lane import requests as lane
from dragoman.wire.shown_calls import MARK
from tests.wire.lane import requests as lanes

_LABELS = ("user", "safety_identifier", "prompt_cache_key")
_VALUES: tuple[Any, ...] = (
    "u-1", "u-1", "5551234567", "x" * 64, "x" * 65, "", "a b", "me@example.com", "é", '"', None, 5,
    "dragoman-label-0", "dragoman-label-1", "0" * 64, {"a": 1}, "0000_-", "%d",
)  # fmt: skip
_SOURCES = {"openai-chat": "messages", "openai-responses": "input"}


@pytest.fixture(autouse=True)
def _nothing_known() -> Iterator[None]:
    lane.HEADS.clear()
    lane.BACKOFF.clear()
    yield
    lane.HEADS.clear()


def _raw(source: str, said: str, **fields: Any) -> bytes:
    messages = [{"role": "user", "content": said}]
    return json.dumps({"model": "m", _SOURCES[source]: messages, **fields}).encode()


@pytest.mark.parametrize("source", _SOURCES)
@pytest.mark.parametrize("target", lanes.TARGETS)
def test_labels_are_translated_alike(
    source: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain and odd labels, several at once, and texts like our placeholders."""
    monkeypatch.setattr(lane, "LONG", 0)
    rng = random.Random(target)
    for number in range(60):
        fields = {name: rng.choice(_VALUES) for name in _LABELS if rng.random() < 0.5}
        if rng.random() < 0.3:
            fields["metadata"] = {"x": rng.choice(("dragoman-label-0", "0" * 64))}
        if rng.random() < 0.2:
            fields["service_tier"] = rng.choice(("dragoman-label-0", "0" * 64, "u-1"))
        raw = _raw(source, rng.choice(("Hi", '"dragoman-label-0"', "0" * 64)), **fields)
        found = lanes.difference(raw, source, target, repair=rng.random() < 0.8)
        assert not isinstance(found, str), (number, fields, found)


@pytest.mark.parametrize("source", _SOURCES)
@pytest.mark.parametrize("label", _LABELS)
def test_another_user_s_request_takes_the_lane(source: str, label: str) -> None:
    """From the second request on; each body has its own label."""
    for target in ("anthropic", "openai-responses", "gemini", "openai:gpt-5.1"):
        took: list[bool] = []
        for number in range(5):
            raw = _raw(source, "Hi", **{label: f"user-{number}"})
            found = lanes.difference(raw, source, target)
            assert not isinstance(found, str), found
            took.append(found.took_lane)
        assert took == [False] + [True] * 4
    assert len(lane.HEADS) == 4


def test_users_are_never_mixed_up() -> None:
    """Many users at once, in threads, get their own label and text."""

    def sent(number: int) -> bool:
        raw = _raw("openai-chat", f"I am {number}.", user=f"user-{number}")
        made = dragoman.translate(raw, source="openai-chat", target="anthropic").body
        is_theirs = made["metadata"]["user_id"] == f"user-{number}"
        return bool(is_theirs and made["messages"][0]["content"] == f"I am {number}.")

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(sent, range(400)))


def test_a_label_like_our_sample_has_a_head_of_its_own() -> None:
    """What a client wrote like a sample is never replaced with another client's label."""
    metadata = {"x": "dragoman-label-0"}
    for user in ("dragoman-label-0", "dragoman-label-0", "user-1", "user-2"):
        raw = _raw("openai-chat", "Hi", user=user, metadata=metadata)
        found = lanes.difference(raw, "openai-chat", "openai-chat")
        assert not isinstance(found, str), (user, found)


# --- the values of metadata


_TALKS: dict[str, tuple[str, bytes]] = {
    "openai-chat": ("metadata", b'"model":"m","messages":[{"role":"user","content":"Hi"}]'),
    "openai-responses": ("metadata", b'"model":"m","input":[{"role":"user","content":"Hi"}]'),
    "anthropic": (
        "metadata",
        b'"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]',
    ),
    "gemini": ("labels", b'"contents":[{"role":"user","parts":[{"text":"Hi"}]}]'),
}
"""By dialect: the field of its metadata, and the rest of a request."""


def _with_metadata(source: str, metadata: bytes, *more: bytes) -> bytes:
    field, rest = _TALKS[source]
    return b'{"%s":%s,%s}' % (field.encode(), metadata, b",".join((*more, rest)))


def _any_metadata(rng: random.Random, number: int) -> bytes:
    """An object as clients write it, or one that none would."""
    keys = ("trace", "user_id", "a.b", "a b", "dragoman-label-0", "é", "\\ud800", "a", ":", "")
    odd = ("t", f"t-{number}", "1:2", "a b", "dragoman-label-1", "\\u0041", "", "0" * 64, "x" * 65)
    values = [*(f'"{text}"' for text in odd), "null", "5", "{}", '["x"]', '"\\udc00"']
    plain = rng.random() < 0.5
    members = [
        rng.choice(('"%s":%s', '"%s" : %s'))
        % (rng.choice(keys[:3] if plain else keys), rng.choice(values[:2] if plain else values))
        for _ in range(rng.choice((0, 1, 1, 2, 3, 20)))
    ]
    return ("{" + rng.choice((",", ", ")).join(members) + "}").encode()


@pytest.mark.parametrize("source", _TALKS)
@pytest.mark.parametrize("target", lanes.TARGETS)
def test_any_metadata_is_translated_alike(
    source: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also keys that occur twice, values that are no strings, and texts like our placeholders."""
    monkeypatch.setattr(lane, "LONG", 0)
    rng = random.Random(f"{source} {target}")
    for number in range(60):
        more = [b'"user":"t"'] * (source.startswith("openai") and rng.random() < 0.3)
        raw = _with_metadata(source, _any_metadata(rng, number), *more)
        found = lanes.difference(raw, source, target, repair=rng.random() < 0.8)
        assert not isinstance(found, str), (number, raw, found)


@pytest.mark.parametrize("source", _TALKS)
def test_new_metadata_takes_the_lane(source: str) -> None:
    """From the second request on: an id for tracing needs no head of its own."""
    for target in ("anthropic", "openai-responses", "gemini", "openai:gpt-5.1"):
        took: list[bool] = []
        for number in range(5):
            raw = _with_metadata(source, b'{"trace": "t-%d", "app": "a"}' % number)
            found = lanes.difference(raw, source, target)
            assert not isinstance(found, str), found
            took.append(found.took_lane)
        assert took == [False] + [True] * 4, target
    assert len(lane.HEADS) == 4


def test_a_label_that_comes_again_is_found_with_what_surrounds_it() -> None:
    """The first two bodies are split into their fields, later ones are not; new labels are."""
    lane.SURROUNDINGS.clear()
    for number in (1, 1, 1, 2, 1):
        found = lanes.difference(
            _raw("openai-chat", "Hi", user=f"user-{number}"), "openai-chat", "anthropic"
        )
        assert not isinstance(found, str), found
    assert len(lane.SURROUNDINGS) == 1


# --- the text of a system prompt


_PROMPTS = (
    "You are helpful.", "  padded  ", "a\n", "é🙂\u2028", "dragoman-label-text", "0" * 64, "%d",
    "x dragoman-label-0 y", '"quoted"', f"{PREFIX}abc", f"{MARK}x", "\u0000", "A" * 3000, " ", "",
)  # fmt: skip


def _prompted(rng: random.Random, number: int) -> bytes:
    """A request with a system prompt that is mostly new."""
    text: Any = rng.choice(_PROMPTS) + rng.choice(("", str(number)))
    content = [{"type": "text", "text": text}] if rng.random() < 0.1 else text
    messages: list[Any] = [{"role": rng.choice(("system", "developer")), "content": content}]
    if rng.random() < 0.1:
        messages[0]["name"] = "n"
    if rng.random() < 0.1:
        messages.append({"role": "system", "content": rng.choice(_PROMPTS)})
    messages.append({"role": "user", "content": rng.choice(("Hi", "dragoman-label-text"))})
    if rng.random() < 0.5:
        called = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [called]})
        messages.append({"role": "tool", "tool_call_id": "c", "content": "done"})
    described = {"name": "f", "description": rng.choice(("d", "dragoman-label-text", "0" * 64))}
    body: dict[str, Any] = {"model": "m", "messages": messages}
    if rng.random() < 0.5:
        body["tools"] = [{"type": "function", "function": described}]
    if rng.random() < 0.3:
        body["user"] = rng.choice(("u-1", "u-2", "dragoman-label-text"))
    return json.dumps(body, ensure_ascii=rng.random() < 0.5).encode()


@pytest.mark.parametrize("target", lanes.TARGETS)
def test_any_system_prompt_is_translated_alike(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a blank one, a list of texts, two of them, and texts like our placeholders."""
    monkeypatch.setattr(lane, "LONG", 0)
    rng = random.Random(target)
    for number in range(80):
        raw = _prompted(rng, number)
        found = lanes.difference(raw, "openai-chat", target, repair=rng.random() < 0.9)
        assert not isinstance(found, str), (number, raw, found)


@pytest.mark.parametrize("target", lanes.TARGETS)
def test_a_new_system_prompt_takes_the_lane(target: str) -> None:
    """From the second request on: a prompt with the time in it needs no head of its own."""
    took: list[bool] = []
    for number in range(5):
        system = {"role": "system", "content": f"It is 10:0{number}."}
        messages = [system, {"role": "user", "content": "Hi"}]
        raw = json.dumps({"model": "m", "messages": messages}).encode()
        found = lanes.difference(raw, "openai-chat", target)
        assert not isinstance(found, str), found
        took.append(found.took_lane)
    assert took[2:] == [True] * 3
    assert len(lane.HEADS) == 1


def test_system_prompts_are_never_mixed_up() -> None:
    """Many clients at once, in threads, get their own prompt."""

    def sent(number: int) -> bool:
        system = {"role": "system", "content": f"I am {number}."}
        messages = [system, {"role": "user", "content": f"{number}"}]
        raw = json.dumps({"model": "m", "messages": messages}).encode()
        made = dragoman.translate(raw, source="openai-chat", target="anthropic").body
        return bool(
            made["system"] == f"I am {number}." and made["messages"][0]["content"] == f"{number}"
        )

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(sent, range(400)))
