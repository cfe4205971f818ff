"""Shared state of the lane is never mixed up, and checks can't be bypassed."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import dragoman
from dragoman import Provider, Target
from dragoman.model.parts import Origin, Thinking
from dragoman.providers import registry, translation
from dragoman.providers.translation import lane_of
from dragoman.wire.dialect import dialect
from dragoman.wire.envelope import Seal, signed_with, wrap
from dragoman.wire.flags import WORDS, IdFlags
from dragoman.wire.lane import requests as lane
from dragoman.wire.lane import switch
from dragoman.wire.lane.heads import Heads
from tests.wire.lane import requests as lanes

pytestmark = pytest.mark.usefixtures("at_first_sight")
_KEY = b"a key of sixteen bytes or more"
_HI = {"role": "user", "content": "Hi"}


def _raw(*messages: Any, **fields: Any) -> bytes:
    return json.dumps({"model": "m", "max_tokens": 100, "messages": messages, **fields}).encode()


# --- envelopes and other content written by fronts


def _forged() -> str:
    made = wrap(Seal(Origin(dialect="gemini"), Thinking(text="x", signature="c2ln")))
    assert made is not None
    return made


def _with_state(source: str, state: str) -> bytes:
    thinking = {"type": "thinking", "thinking": "t", "signature": state}
    reasoning = {"type": "reasoning", "summary": [], "encrypted_content": state}
    call = {"functionCall": {"name": "f", "id": "1", "args": {}}, "thoughtSignature": state}
    answered = {"functionResponse": {"name": "f", "id": "1", "response": {"output": "x"}}}
    tools = [{"functionDeclarations": [{"name": "f"}]}]
    text = {"type": "text", "text": "A"}
    bodies: dict[str, Any] = {
        "anthropic": {
            "model": "m",
            "max_tokens": 5,
            "messages": [_HI, {"role": "assistant", "content": [thinking, text]}, _HI],
        },
        "openai-responses": {
            "model": "m",
            "input": [_HI, reasoning, {"role": "assistant", "content": "A"}, _HI],
        },
        "gemini": {
            "contents": [
                {"role": "user", "parts": [{"text": "Hi"}]},
                {"role": "model", "parts": [call]},
                {"role": "user", "parts": [answered]},
            ],
            "tools": tools,
        },
    }
    return json.dumps(bodies[source]).encode()


@pytest.mark.parametrize("repair", [True, False])
@pytest.mark.parametrize("source", ["anthropic", "openai-responses", "gemini"])
def test_forged_state_is_always_refused(source: str, repair: bool) -> None:
    """If envelopes are signed, also within the same dialect and with escapes."""
    plain = _with_state(source, "c29tZXRoaW5n")
    forged = _with_state(source, _forged())
    hidden = forged.replace(_forged().encode(), b"\\u005a" + _forged()[1:].encode())
    with signed_with(_KEY):
        for target in (source, "openai-chat", "openai:gpt-5.1"):
            for raw in (forged, hidden):
                with pytest.raises(dragoman.errors.WireError, match="not signed here"):
                    lanes.translated(raw, source, target, repair=repair)
            lanes.translated(plain, source, target, repair=repair)


def test_calls_converted_for_clients_leave_the_lane() -> None:
    """Calls of other providers that a front has converted never pass unchanged."""
    shown = {"type": "server_tool_use", "id": "srvtoolu_dragoman_1", "name": "web_search"}
    shown["input"] = {"query": "x"}  # type: ignore[assignment]  # a dict of anything
    found = {"type": "web_search_tool_result", "tool_use_id": shown["id"], "content": []}
    raw = _raw(_HI, {"role": "assistant", "content": [shown, found]}, _HI)
    for repair in (True, False):
        result = lanes.difference(raw, "anthropic", "anthropic", repair=repair)
        assert not isinstance(result, str), result
        assert not result.took_lane


# --- targets given as objects


@pytest.mark.parametrize("make", [lambda: dialect("anthropic").target, lambda: _acme("anthropic")])
def test_targets_and_providers_take_the_lane(make: Callable[[], Target | Provider]) -> None:
    """They may also be given as objects, with the same result."""
    raw = _raw({"role": "system", "content": "Brief."}, _HI)
    target = make()
    with switch.off():
        general = dragoman.translate(raw, source="openai-chat", target=target)
    made = dragoman.translate(raw, source="openai-chat", target=target)
    assert made._raw is not None
    assert (made.to_bytes(), made.losses, made.repairs) == (
        general.to_bytes(), general.losses, general.repairs,
    )  # fmt: skip


def _acme(spoken: str, **flags: Any) -> Provider:
    return Provider("acme", (Target(dialect=spoken, **flags),), "https://acme.example")


def test_a_deleted_target_is_not_reused() -> None:
    """Short-lived targets may have the same address in memory."""
    raw = _raw({"role": "system", "content": "Brief."}, _HI)
    for turn in range(200):
        spoken = ("anthropic", "openai-chat", "ollama")[turn % 3]
        target = Target(dialect=spoken)
        body = dragoman.translate(raw, source="openai-chat", target=target).body
        assert ("system" in body) == (spoken == "anthropic")
        del target
    assert len(translation._kept) <= translation._CACHE_SIZE


@pytest.mark.thorough
def test_a_replaced_provider_is_not_reused() -> None:
    """A name may refer to another provider each time."""
    raw = _raw({"role": "system", "content": "Brief."}, _HI)
    for turn in range(4):
        spoken = ("anthropic", "openai-chat")[turn % 2]
        registry._registered.clear()
        gc.collect()
        registry.register(_acme(spoken))
        body = dragoman.translate(raw, source="openai-chat", target="acme:m").body
        assert ("system" in body) == (spoken == "anthropic")
    registry._registered.clear()
    with pytest.raises(dragoman.errors.ConfigError):
        dragoman.translate(raw, source="openai-chat", target="acme:m")


def test_the_cache_of_targets_is_bounded() -> None:
    """It is limited, however many paths clients use."""
    contents = [{"role": "user", "parts": [{"text": "Hi"}]}]
    raw = json.dumps({"contents": contents}).encode()
    for number in range(translation._CACHE_SIZE + 50):
        path = f"/v1beta/models/m{number}:generateContent"
        made = dragoman.translate(raw, source="gemini", target="openai-chat", path=path)
        assert made.body["model"] == f"m{number}"
    assert len(translation._kept) <= translation._CACHE_SIZE


def test_external_dialects_have_no_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dialect derived from ours may decode differently, so it takes the general path."""
    assert lane_of("anthropic") is not None
    monkeypatch.setattr("dragoman.providers.translation.is_own_dialect", lambda _: False)
    assert lane_of("anthropic") is None


# --- state shared by requests


def test_requests_share_no_mutable_state() -> None:
    """Headers, bodies and contexts of requests with the same head are independent."""
    tool = {"type": "function", "function": {"name": "a.b", "parameters": {"type": "object"}}}
    raw = _raw(_HI, tools=[tool])
    for target in ("anthropic", "openai-chat", "gemini"):
        first = dragoman.translate(raw, source="openai-chat", target=target)
        before = first.to_bytes()
        if type(first.headers) is dict:
            first.headers["authorization"] = "Bearer secret"
        first.body["tools"].clear()
        for held in (first.context.names, first.context.undos, first.context.calls):
            with pytest.raises(TypeError):
                held["x"] = "y"  # type: ignore[index]  # that is the point
        second = dragoman.translate(raw, source="openai-chat", target=target)
        assert second._raw is not None
        assert (dict(second.headers), second.to_bytes()) == ({}, before)


def test_answers_are_restored_alike() -> None:
    """Aliases and wrapped outputs are restored as on the general path."""
    schema = {"type": "array", "items": {"type": "integer"}}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    tool = {"type": "function", "function": {"name": "a.b", "parameters": {"type": "object"}}}
    raw = _raw(_HI, tools=[tool], response_format=form)
    contexts = []
    with switch.off():
        contexts.append(dragoman.translate(raw, source="openai-chat", target="anthropic").context)
    for _ in range(3):
        made = dragoman.translate(raw, source="openai-chat", target="anthropic")
        assert made._raw is not None
        contexts.append(made.context)
    alias = next(iter(contexts[0].names), "a.b")
    answer = {
        "id": "1", "type": "message", "role": "assistant", "model": "m",
        "content": [
            {"type": "text", "text": '{"value": [1]}'},
            {"type": "tool_use", "id": "t", "name": alias, "input": {}},
        ],
        "stop_reason": "tool_use", "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    told = [dialect("anthropic").decode_response(answer, context) for context in contexts]
    assert all(each == told[0] for each in told)
    assert [call.name for call in told[0].tool_calls] == ["a.b"]


def test_threads_share_heads() -> None:
    """With many threads and a small cache, each request has its own result."""
    bodies = [_raw({"role": "user", "content": str(n)}, user=f"user {n % 40}") for n in range(400)]

    def sent(raw: bytes) -> bool:
        target = ("openai-responses", "openai-chat")[len(raw) % 2]
        made = json.loads(dragoman.translate(raw, source="openai-chat", target=target).to_bytes())
        given = json.loads(raw)
        said = made.get("messages") or made["input"]
        text = said if isinstance(said, str) else said[0]["content"]
        return bool(made["user"] == given["user"] and text == given["messages"][0]["content"])

    small = Heads(max_heads=10)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lane, "HEADS", small)
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(sent, bodies * 3))
    assert len(small) <= 10


def test_used_heads_are_not_evicted() -> None:
    """A head in use stays cached while a thousand others come once."""
    heads = Heads(max_heads=10)
    heads.keep("used", b"used", None)
    for number in range(1000):
        assert heads.find("used", b"used") is not None
        heads.keep(number, b"%d" % number, None)
    assert len(heads) == 10


def test_caches_hold_what_they_say() -> None:
    """Their sizes count small objects too: many fields, losses and aliases, not only bytes."""
    lane.SURROUNDINGS.clear()
    schema = {"parameters": {"type": "object"}}

    def flood() -> None:
        for number in range(10):
            fields = {f"x{number}_{n}": n for n in range(100)}
            names = [f"a.{number}.{n}" for n in range(20)]
            tools = [{"type": "function", "function": {"name": n, **schema}} for n in names]
            raw = _raw(_HI, tools=tools, **fields)
            for _ in range(2):
                dragoman.translate(raw, source="openai-chat", target="anthropic")

    flood()  # fills other caches, which stay
    lane.HEADS.clear()
    lane.SURROUNDINGS.clear()
    tracemalloc.start()
    try:
        flood()
        for cache in (lane.HEADS, lane.SURROUNDINGS):
            said, (before, _) = cache.size, tracemalloc.get_traced_memory()
            cache.clear()
            gc.collect()
            assert before - tracemalloc.get_traced_memory()[0] < 1.5 * said
    finally:
        tracemalloc.stop()


# --- input types


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, bytes.decode, json.loads])
def test_bodies_of_any_type_are_translated_alike(kind: Callable[[bytes], Any]) -> None:
    """Bytes take the lane; text, buffers and dicts give the same result."""
    raw = _raw({"role": "system", "content": "Brief."}, _HI)
    expected = dragoman.translate(raw, source="openai-chat", target="anthropic").to_bytes()
    made = dragoman.translate(kind(raw), source="openai-chat", target="anthropic")
    assert made.to_bytes() == expected


def test_strict_raises_in_the_lane_as_well() -> None:
    """Losses are known in the lane, too."""
    raw = _raw(_HI, seed=1)
    assert dragoman.translate(raw, source="openai-chat", target="anthropic")._raw is not None
    with pytest.raises(dragoman.errors.LossError):
        dragoman.translate(raw, source="openai-chat", target="anthropic", strict=True)


def test_ids_are_checked_all_at_once() -> None:
    """Many ids are accepted if each of them is."""
    flags = IdFlags(pattern=WORDS, max_length=10)
    plain = [f"id_{n}-x" for n in range(20)]
    assert flags.accepts_all(plain)
    for odd in ("", "a b", "é", "x" * 11, "a.b", "\ud800", "a\n"):
        ids = [*plain, odd]
        assert flags.accepts_all(ids) == all(map(flags.accepts, ids)) == False  # noqa: E712 - both
        assert not flags.accepts_all([odd])
    assert flags.accepts_all(plain[:2])
    anything = IdFlags(max_length=10)
    for ids in (plain, plain[:2], ["é"], [""], ["x" * 11], [*plain, "x" * 11], []):
        assert anything.accepts_all(ids) == all(map(anything.accepts, ids))
